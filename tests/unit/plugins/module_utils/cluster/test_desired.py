"""The desired objects, for every way in which a change of membership may be interrupted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import desired, member_config
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.manifests import Objects
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import Observation

from .builders import (
    CLUSTER,
    UNMANAGED,
    answer,
    answering,
    claim,
    down,
    listing,
    member,
    names,
    running,
    situation,
    unstarted,
    without_quorum,
)


def _desired(observed: Observation, size: int = 3, **change: Any) -> Objects:
    s = situation(replace(CLUSTER, size=size), observed)
    assert s.membership
    return desired.for_members(s, s.membership, desired.Change(**change))


def _open(made: Objects) -> dict[str, int]:
    """The files that are open, and the number of members in each."""
    found = {}
    for name, text in made.config_map["data"].items():
        assert 'initial-cluster-state: "existing"' in text
        if not member_config.is_sealed(CLUSTER, name.removesuffix(".yaml"), text):
            found[name] = text.count("=http")
    return found


def _replicas(made: Objects) -> int:
    return int(made.stateful_set["spec"]["replicas"])


def test_nothing_differs_in_a_healthy_cluster() -> None:
    observed = running()
    assert desired.changed(_desired(observed), situation(CLUSTER, observed)) == ()


def test_surplus_configuration_file_is_a_difference() -> None:
    observed = running()
    config_map = observed.objects["ConfigMap/e-config"]
    surplus = {**config_map, "data": {**config_map["data"], "e-3.yaml": ""}}
    observed = replace(observed, objects={**observed.objects, "ConfigMap/e-config": surplus})
    assert [one["kind"] for one in desired.changed(_desired(observed), situation(CLUSTER, observed))] == ["ConfigMap"]


def test_joining_member_gets_an_open_file_and_a_pod() -> None:
    made = _desired(running(), size=5, joining="e-3")
    assert (_open(made), _replicas(made)) == ({"e-3.yaml": 4}, 4)
    assert made.disruption_budget["spec"]["minAvailable"] == 3


def test_interrupted_join_is_finished() -> None:
    """The member list has the learner, nothing else does yet."""
    made = _desired(listing(running(), *map(member, range(3)), unstarted(3, 9)), size=5)
    assert (_open(made), _replicas(made)) == ({"e-3.yaml": 4}, 4)


def test_file_of_a_replacement_is_open_although_its_predecessor_still_answers() -> None:
    made = _desired(listing(running(), member(0), member(1), unstarted(2, 9)))
    assert _open(made) == {"e-2.yaml": 3}


def test_file_is_sealed_as_soon_as_the_member_has_started() -> None:
    observed = running(opened=[2])
    learner = listing(observed, member(0), member(1), unstarted(2, 9))
    assert _open(_desired(answering(learner, {2: answer(9, learner=True)}))) == {}
    published = listing(observed, member(0), member(1), member(2, 9, is_learner=True))
    assert _open(_desired(down(published, 2))) == {}
    assert _open(_desired(down(observed, 2))) == {}  # a voter that does not answer


def test_file_of_a_first_member_that_has_not_started_stays_open() -> None:
    late = down(listing(running(opened=[2]), member(0), member(1), member(2, client_urls=())), 2)
    assert _open(_desired(late)) == {"e-2.yaml": 3}


def test_sealed_file_of_a_voter_is_never_opened_again() -> None:
    silent = down(listing(running(), member(0), member(1), member(2, client_urls=())), 2)
    assert _open(_desired(silent)) == {}


def test_leaving_member_loses_its_file_and_its_pod() -> None:
    made = _desired(running(range(5), replicas=5), leaving="5")
    assert (sorted(made.config_map["data"]), _replicas(made)) == ([f"e-{n}.yaml" for n in range(4)], 4)


def test_pod_whose_member_is_gone_stays_while_its_slot_is_wanted() -> None:
    made = _desired(listing(running(), member(0), member(2)))
    assert ("e-1.yaml" in made.config_map["data"], _open(made), _replicas(made)) == (True, {}, 3)
    assert _replicas(_desired(listing(running(), member(0), member(1)), size=2)) == 2


def test_unmanaged_members_are_in_the_list_that_a_learner_needs() -> None:
    voter = replace(UNMANAGED, is_learner=False)
    made = _desired(listing(running(), *map(member, range(3)), voter), size=4, joining="e-3")
    assert _open(made) == {"e-3.yaml": 5}


def test_claims_are_left_over_where_no_member_is_and_none_is_wanted() -> None:
    claims = [claim(number) for number in range(6)]
    claims[4] = replace(claims[4], cluster_uid="another")
    claims[5] = replace(claims[5], deleting=True)
    observed = replace(running(), claims=tuple(claims))

    def leftover(size: int, leaving: str = "") -> list[str]:
        s = situation(replace(CLUSTER, size=size), observed)
        assert s.membership
        return names(desired.leftover_claims(s, s.membership, leaving=leaving))

    assert leftover(3) == ["data-e-3"]
    assert leftover(2) == ["data-e-3"]  # e-2 is still a member
    assert leftover(2, leaving="3") == ["data-e-2", "data-e-3"]
    assert leftover(5) == []


def test_without_quorum_the_config_map_records_the_members() -> None:
    observed = without_quorum(running(opened=[2]))
    s = situation(CLUSTER, observed)
    assert desired.member_pods(s) == ["e-0", "e-1", "e-2"]
    assert desired.started(s) == ["e-0", "e-1"]
    without_objects = situation(CLUSTER, replace(observed, objects={}))
    assert desired.member_pods(without_objects) == ["e-0", "e-1", "e-2"]  # as many as there are PVCs

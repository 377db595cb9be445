from __future__ import annotations

from dataclasses import replace
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import config, desired
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import Claim, Observed
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.slots import gather
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest

from .clusters import CLUSTER, OTHER, answer, answering, listing, member, running, unstarted, without


def _for_team(seen: Observed, size: int = 3, **change: Any) -> dict[str, Manifest]:
    cluster = replace(CLUSTER, size=size)
    team = gather(cluster, seen)
    assert team
    return {manifest["kind"]: manifest for manifest in desired.for_team(cluster, seen, team, desired.Change(**change))}


def _open(made: dict[str, Manifest]) -> dict[str, int]:
    """Which files are open, and for how many members."""
    found = {}
    for name, text in made["ConfigMap"]["data"].items():
        assert 'initial-cluster-state: "existing"' in text
        if not config.is_sealed(CLUSTER, name.removesuffix(".yaml"), text):
            found[name] = text.count("=http")
    return found


def _replicas(made: dict[str, Manifest]) -> int:
    return int(made["StatefulSet"]["spec"]["replicas"])


def test_nothing_differs_when_all_is_well() -> None:
    seen = running()
    team = gather(CLUSTER, seen)
    assert team
    assert desired.changed(desired.for_team(CLUSTER, seen, team), seen) == ()


def test_one_who_comes_gets_an_open_file_and_a_pod() -> None:
    made = _for_team(running(), size=5, coming="e-3")
    assert (_open(made), _replicas(made)) == ({"e-3.yaml": 4}, 4)
    assert made["PodDisruptionBudget"]["spec"]["minAvailable"] == 3


def test_a_join_that_was_cut_short_is_finished() -> None:
    """The list has the learner, nothing else does yet."""
    made = _for_team(listing(running(), *map(member, range(3)), unstarted(3, 9)), size=5)
    assert (_open(made), _replicas(made)) == ({"e-3.yaml": 4}, 4)


def test_a_replacement_is_open_though_its_predecessor_still_answers() -> None:
    made = _for_team(listing(running(), member(0), member(1), unstarted(2, 9)))
    assert _open(made) == {"e-2.yaml": 3}


def test_who_has_started_is_sealed_at_once() -> None:
    seen = running(opened=[2])
    learner = listing(seen, member(0), member(1), unstarted(2, 9))
    assert _open(_for_team(answering(learner, {2: answer(9, learner=True)}))) == {}
    published = listing(seen, member(0), member(1), member(2, 9, is_learner=True))
    assert _open(_for_team(without(published, 2))) == {}
    assert _open(_for_team(without(seen, 2))) == {}  # a voter that is silent


def test_a_first_member_that_has_yet_to_start_stays_open() -> None:
    late = without(listing(running(opened=[2]), member(0), member(1), member(2, client_urls=())), 2)
    assert _open(_for_team(late)) == {"e-2.yaml": 3}


def test_a_voter_s_sealed_file_is_never_opened_again() -> None:
    silent = without(listing(running(), member(0), member(1), member(2, client_urls=())), 2)
    assert _open(_for_team(silent)) == {}


def test_one_who_goes_loses_file_and_pod() -> None:
    made = _for_team(running(range(5), replicas=5), going="5")
    assert (sorted(made["ConfigMap"]["data"]), _replicas(made)) == ([f"e-{n}.yaml" for n in range(4)], 4)


def test_a_pod_whose_member_is_gone_stays_where_one_is_wanted() -> None:
    made = _for_team(listing(running(), member(0), member(2)))
    assert ("e-1.yaml" in made["ConfigMap"]["data"], _open(made), _replicas(made)) == (True, {}, 3)
    assert _replicas(_for_team(listing(running(), member(0), member(1)), size=2)) == 2


def test_strangers_are_in_the_list_that_a_learner_needs() -> None:
    voter = replace(OTHER, is_learner=False)
    made = _for_team(listing(running(), *map(member, range(3)), voter), size=4, coming="e-3")
    assert _open(made) == {"e-3.yaml": 5}


def test_claims_are_left_over_when_no_member_is_there_and_none_is_wanted() -> None:
    seen = running(range(3), replicas=3)
    claims = [Claim(f"data-e-{number}", CLUSTER.uid) for number in range(6)]
    claims[4] = replace(claims[4], cluster_uid="another")
    claims[5] = replace(claims[5], deleting=True)
    seen = replace(seen, claims=tuple(claims))
    team = gather(CLUSTER, seen)
    assert team
    assert desired.leftover_claims(CLUSTER, seen, team) == ("data-e-3",)
    smaller = replace(CLUSTER, size=2)
    assert desired.leftover_claims(smaller, seen, team) == ("data-e-3",)  # e-2 is still a member
    assert desired.leftover_claims(smaller, seen, team, going="3") == ("data-e-2", "data-e-3")
    assert desired.leftover_claims(replace(CLUSTER, size=5), seen, team) == ()


def test_without_a_quorum_the_configuration_tells_who_is_there() -> None:
    seen = replace(running(opened=[2]), members=None, answers={})
    assert desired.member_pods(CLUSTER, seen) == ["e-0", "e-1", "e-2"]
    assert desired.started(CLUSTER, seen) == ["e-0", "e-1"]
    nothing = replace(seen, objects={})
    assert desired.member_pods(CLUSTER, nothing) == ["e-0", "e-1", "e-2"]  # as many as there are claims

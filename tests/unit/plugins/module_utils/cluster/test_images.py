"""Images by digest, and images that the operator's setting does not allow."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster, TlsSpec
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import manifests
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.actions import (
    ReplaceMember,
    RestartMember,
    UpdateObjects,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import Observation
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observe import pod_of
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase, Reason
from ansible_collections.etcdops.etcd.plugins.module_utils.plan import Plan

from . import builders as b

ONE, OTHER = (f"registry.example.com/etcd@sha256:{letter * 64}" for letter in "ab")
PINNED = replace(b.CLUSTER, spec_image=ONE)
ALLOWED = ("registry.example.com",)


def _container(cluster: Cluster, version: str = "") -> dict[str, Any]:
    found: dict[str, Any] = manifests.pod_template(cluster, version or cluster.version)["spec"]["containers"][0]
    return found


def _running(cluster: Cluster) -> Observation:
    """A healthy cluster whose pods and objects are those of this spec."""
    observed = b.running()
    files = observed.objects["ConfigMap/e-config"]["data"]
    pods = tuple(replace(one, template_hash=b.template_hash(cluster)) for one in observed.pods)
    return replace(observed, objects=b.rendered(cluster, 3, files, 3), pods=pods)


def _allowing(observed: Observation, *prefixes: str) -> Observation:
    return replace(observed, allowed_repositories=prefixes)


def test_pod_with_an_image_by_digest_tells_its_version() -> None:
    template = manifests.pod_template(PINNED, "3.6.16")
    assert template["spec"]["containers"][0]["image"] == ONE
    assert manifests.version_of(template) == "3.6.16"
    live = {
        "metadata": {**template["metadata"], "name": "e-0", "uid": "1", "creationTimestamp": "2026-11-16T00:00:00Z"},
        "spec": template["spec"],
    }
    assert pod_of(live, {}, b.NOW).version == "3.6.16"


def test_template_without_an_image_by_digest_is_what_it_was() -> None:
    template = manifests.pod_template(b.CLUSTER, "3.6.16")
    assert manifests.VERSION not in template["metadata"]["annotations"]
    assert template["metadata"]["annotations"][manifests.TEMPLATE_HASH] == "e539bfc0eb8886a6"


def test_settled_cluster_with_an_image_by_digest_runs() -> None:
    plan = b.planned(PINNED, _running(PINNED))
    assert (plan.phase, plan.reason, plan.action) == (Phase.RUNNING, Reason.ALL_HEALTHY, None)


def test_changed_image_of_the_same_version_is_rolled_out() -> None:
    observed = _running(PINNED)
    plan = b.planned(replace(PINNED, spec_image=OTHER), observed)
    assert (plan.phase, plan.reason) == (Phase.RESTARTING, Reason.CHANGING_SETTINGS)
    observed = b.applied(observed, plan)
    plan = b.planned(replace(PINNED, spec_image=OTHER), observed)
    assert b.action_of(plan, RestartMember).pod.name != "e-0"  # the leader


def test_image_of_another_version_waits_for_the_upgrade() -> None:
    moved = replace(PINNED, version="3.7.3", spec_image=OTHER)
    plan = b.planned(moved, _running(PINNED))
    assert plan.reason is Reason.TAKING_SNAPSHOT
    assert not isinstance(plan.action, UpdateObjects)


def test_image_with_another_version_stops_the_rollout() -> None:
    changed = replace(PINNED, spec_image=OTHER)
    observed = b.applied(_running(PINNED), b.planned(changed, _running(PINNED)))
    observed = b.with_pod(observed, 2, template_hash=b.template_hash(changed))
    observed = b.answering(observed, {2: b.answer(3, version="3.6.15")})
    plan = b.planned(changed, observed)
    assert (plan.reason, plan.action) == (Reason.ROLLOUT_STOPPED, None)
    assert "e-2 reports 3.6.15 although spec.version is 3.6.16." in plan.message


def test_image_with_another_version_is_reported() -> None:
    observed = _running(PINNED)
    observed = b.answering(observed, {each: b.answer(each + 1, version="3.6.15") for each in range(3)})
    plan = b.planned(PINNED, observed)
    assert (plan.phase, plan.reason, plan.action) == (Phase.UNSUPPORTED, Reason.OTHER_VERSION, None)
    assert plan.message == (
        "spec.image contains etcd 3.6.15, but spec.version says 3.6.16. Set spec.version to what it contains, or "
        "spec.image to another image."
    )


def _refused(plan: Plan) -> None:
    assert (plan.phase, plan.reason, plan.action) == (Phase.UNSUPPORTED, Reason.IMAGE_NOT_ALLOWED, None)
    assert plan.message.startswith("spec.repository: the operator does not allow images of gcr.io/")
    assert "ETCDOPS_ALLOWED_REPOSITORIES" in plan.message


def test_cluster_with_an_image_that_is_not_allowed_is_not_started() -> None:
    _refused(b.planned(b.CLUSTER, _allowing(b.nothing(), *ALLOWED)))
    assert b.planned(PINNED, _allowing(b.nothing(), *ALLOWED)).reason is Reason.BOOTSTRAPPING


def test_members_keep_their_image_when_another_one_is_not_allowed() -> None:
    _refused(b.planned(b.CLUSTER, _allowing(_running(PINNED), *ALLOWED)))


def test_cluster_that_runs_an_image_that_is_not_allowed_any_more_is_left_as_it_is() -> None:
    _refused(b.planned(b.CLUSTER, _allowing(b.running(), *ALLOWED)))


def test_lost_member_is_replaced_with_the_image_that_there_is() -> None:
    observed = b.with_claim(b.down(_running(PINNED), 2, scheduled=False), 2, stranded=True)
    plan = b.planned(b.CLUSTER, _allowing(observed, *ALLOWED))
    assert isinstance(plan.action, ReplaceMember)
    assert "ETCDOPS_ALLOWED_REPOSITORIES" in plan.message
    for each in b.objects_of(plan):
        if each["kind"] == "StatefulSet":
            assert each["spec"]["template"]["spec"]["containers"][0]["image"] == ONE


def test_only_the_keys_of_a_certificate_are_mounted_of_a_users_secret() -> None:
    provided = replace(b.CLUSTER, tls=TlsSpec("Provided", "server", "peer", "client"))
    volumes = manifests.pod_template(provided, "3.6.16")["spec"]["volumes"]
    for volume in volumes[1:]:
        assert [each["key"] for each in volume["secret"]["items"]] == ["ca.crt", "tls.crt", "tls.key"]
    for volume in manifests.pod_template(b.CLUSTER, "3.6.16")["spec"]["volumes"][1:]:
        assert "items" not in volume["secret"]  # nothing else is in it, and a change would restart every member

"""Another version: nothing moves before the path is clear, everybody is well and a snapshot is there."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster, UpgradeSpec, read
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import manifests, upgrade
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import Answer, Observed, Upgrade
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase, Plan, Step
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.planner import plan
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.status import events, status
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.versions import of_image

from .clusters import CLUSTER, NOW, OTHER, applied, listing, member, running, without

SKIP = UpgradeSpec(snapshot=False)
NEW = replace(CLUSTER, version="3.6.17", generation=2, upgrade=UpgradeSpec(backup={"destination": {"newClaim": {}}}))
NEXT = replace(NEW, version="3.7.3", upgrade=SKIP)


def versions(seen: Observed, told: list[str], cluster_version: str, **more: Any) -> Observed:
    """The members run these."""
    answers = {}
    for number, version in enumerate(told):
        name, known = CLUSTER.pod_name(number), seen.answers[CLUSTER.pod_name(number)].status
        assert known
        storage = more.get("storage", f"{cluster_version}.0")
        status_ = replace(known, version=version, storage_version=storage, downgrade=more.get("downgrade", ""))
        answers[name] = Answer(status_, True, "", f"{cluster_version}.0")
    pods = tuple(replace(pod, version=version) for pod, version in zip(seen.pods, told, strict=True))
    return replace(seen, answers=answers, pods=pods)


def whole(version: str = "3.6.16") -> Observed:
    return versions(running(), [version] * 3, version.rpartition(".")[0])


def after(seen: Observed, planned: Plan) -> Observed:
    """The step was taken, and the status written."""
    seen = applied(seen, planned)
    return replace(seen, phase=planned.phase, upgrade=planned.upgrade or seen.upgrade)


def image(planned: Plan) -> str:
    made = [each for each in planned.apply if each["kind"] == "StatefulSet"]
    return of_image(made[0]["spec"]["template"]["spec"]["containers"][0]["image"]) if made else ""


def backed_up(seen: Observed, phase: str, **more: Any) -> Observed:
    assert seen.upgrade
    key = f"EtcdBackup/{seen.upgrade.snapshot}"
    made = seen.objects[key]
    done = {"phase": phase, "clusterID": "abc", "completionTime": NOW.isoformat(), "message": "It is full.", **more}
    meta = made["metadata"] | {"creationTimestamp": NOW.isoformat()}
    return replace(seen, objects={**seen.objects, key: {**made, "metadata": meta, "status": done}})


# -- the snapshot


def test_a_snapshot_comes_first_and_pods_keep_their_version_until_it_is_there() -> None:
    first = plan(NEW, whole())
    assert (first.phase, first.reason, first.step) == (Phase.UPGRADING, "TakingSnapshot", Step.SNAPSHOT)
    (backup,) = first.apply
    assert backup["kind"] == "EtcdBackup"
    assert backup["metadata"]["name"].startswith("e-before-3-6-17-")
    assert backup["metadata"]["labels"]["etcdops.dev/upgrade"] == "e"
    assert "ownerReferences" not in backup["metadata"]
    assert backup["spec"] == {"cluster": "e", "destination": {"newClaim": {}}, "deletion": {"storage": "Delete"}}
    seen = after(whole(), first)
    waiting = plan(NEW, seen)
    assert (waiting.step, waiting.reason, waiting.apply) == (Step.IDLE, "TakingSnapshot", ())
    release = plan(NEW, backed_up(seen, "Succeeded"))
    assert (release.reason, image(release)) == ("UpgradeStarts", "3.6.17")


def test_a_pod_that_is_lost_meanwhile_comes_back_as_it_was() -> None:
    seen = after(whole(), plan(replace(NEW, size=5), whole()))
    made = plan(replace(NEW, size=5), replace(without(seen, 2), objects={**seen.objects, "Service/e-peers": {}}))
    assert all(each["kind"] != "StatefulSet" for each in made.apply)


def test_the_snapshot_fails_closed_and_is_tried_again() -> None:
    seen = backed_up(after(whole(), plan(NEW, whole())), "Failed")
    failed = plan(NEW, seen)
    assert (failed.step, failed.reason) == (Step.IDLE, "SnapshotFailed")
    assert "It is full." in failed.message
    again = plan(NEW, replace(seen, now=NOW + timedelta(minutes=2)))
    assert (again.step, again.reason) == (Step.SNAPSHOT, "SnapshotFailed")
    assert again.delete_backups == (seen.upgrade.snapshot if seen.upgrade else "",)
    elsewhere = replace(NEW, upgrade=UpgradeSpec(backup={"destination": {"claim": {"name": "large"}}}))
    assert plan(elsewhere, seen).delete_backups
    late = {"type": "Failed", "status": "True", "lastTransitionTime": (NOW + timedelta(minutes=2)).isoformat()}
    seen = backed_up(seen, "Failed", conditions=[late])  # a minute from its failure on, so that it can be read
    assert plan(NEW, replace(seen, now=NOW + timedelta(minutes=2))).step is Step.IDLE


def test_a_snapshot_that_does_not_get_on_says_why_and_goes_when_another_is_wanted() -> None:
    seen = backed_up(after(whole(), plan(NEW, whole())), "Pending", message="There is no claim.")
    waits = plan(NEW, seen)
    assert (waits.step, waits.reason) == (Step.IDLE, "TakingSnapshot")
    assert waits.message.endswith("There is no claim.")
    elsewhere = replace(NEW, upgrade=UpgradeSpec(backup={"destination": {"claim": {"name": "large"}}}))
    assert plan(elsewhere, seen).delete_backups == (seen.upgrade.snapshot if seen.upgrade else "",)


@pytest.mark.parametrize("wrong", [{"clusterID": "def"}, {"completionTime": (NOW - timedelta(hours=1)).isoformat()}])
def test_a_snapshot_of_another_cluster_or_another_day_does_not_count(wrong: dict[str, str]) -> None:
    seen = after(whole(), plan(NEW, whole()))
    again = plan(NEW, backed_up(replace(seen, now=NOW + timedelta(seconds=1)), "Succeeded", **wrong))
    assert (again.reason, image(again)) == ("TakingSnapshot", "")
    assert again.upgrade
    assert again.upgrade.snapshot != (seen.upgrade.snapshot if seen.upgrade else "")


def test_the_size_may_change_while_the_snapshot_fails() -> None:
    seen = backed_up(after(whole(), plan(NEW, whole())), "Failed")
    assert plan(replace(NEW, size=5), seen).add == "e-3"


def test_without_a_snapshot_if_the_user_says_so() -> None:
    release = plan(replace(NEW, upgrade=SKIP), whole())
    assert (release.reason, image(release)) == ("UpgradeStarts", "3.6.17")
    assert "no snapshot" in release.message


def test_it_is_kept_as_long_as_the_user_says() -> None:
    noted = Upgrade("3.6.15", "3.6.16", NOW, "e-before", completed=NOW)
    cluster = replace(CLUSTER, upgrade=UpgradeSpec(keep_for=timedelta(hours=2)))
    seen = replace(whole(), upgrade=noted, objects={**whole().objects, "EtcdBackup/e-before": {}})
    assert plan(cluster, replace(seen, now=NOW + timedelta(hours=1))).step is Step.IDLE
    gone = plan(cluster, replace(seen, now=NOW + timedelta(hours=3)))
    assert (gone.step, gone.delete_backups) == (Step.SNAPSHOT, ("e-before",))
    assert plan(CLUSTER, replace(seen, now=NOW + timedelta(days=300))).step is Step.IDLE


# -- what is in the way


def test_a_version_that_can_not_be_reached_is_refused_and_nothing_changes() -> None:
    refused = plan(replace(NEW, version="3.7.3"), versions(running(), ["3.5.35"] * 3, "3.5"))
    assert (refused.phase, refused.reason, refused.step) == (Phase.UNSUPPORTED, "VersionRefused", Step.IDLE)


def test_what_members_run_counts_and_not_what_was_asked_for() -> None:
    seen = versions(running(), ["3.6.10", "3.6.16", "3.6.16"], "3.6")
    assert plan(NEXT, seen).reason == "VersionRefused"


def test_an_alarm_or_a_stranger_holds_it_up() -> None:
    seen = whole()
    told = seen.answers["e-1"]
    assert told.status
    alarmed = replace(told, status=replace(told.status, errors=("memberID:1 alarm:NOSPACE",)))
    assert plan(NEW, replace(seen, answers={**seen.answers, "e-1": alarmed})).reason == "UpgradeWaits"
    strange = listing(seen, *map(member, range(3)), replace(OTHER, is_learner=False))
    assert plan(NEW, strange).reason == "UpgradeWaits"


def test_it_waits_until_every_member_serves() -> None:
    waits = plan(NEW, without(whole(), 2))
    assert (waits.phase, waits.step) == (Phase.DEGRADED, Step.IDLE)
    assert "3.6.17 waits until every member serves" in waits.message


# -- what etcd must do


def test_to_3_7_the_logs_are_dropped_first() -> None:
    noted, step = None, None
    seen = whole()
    steps = []
    for state in (
        {"cluster_version": "3.6"},
        {"cluster_version": "3.6", "downgrade": "3.5.0"},
        {"cluster_version": "3.5", "downgrade": "3.5.0"},
        {"cluster_version": "3.5"},
        {"cluster_version": "3.6"},
    ):
        told = {"storage": "3.6.0", **state}
        seen = replace(versions(seen, ["3.6.16"] * 3, **told), upgrade=noted)
        step = plan(NEXT, seen)
        noted = step.upgrade
        steps.append((step.reason, step.step, step.downgrade))
    assert steps == [
        ("PreparingLog", Step.DOWNGRADE, "3.5"),
        ("PreparingLog", Step.IDLE, ""),
        ("PreparingLog", Step.DOWNGRADE, ""),
        ("PreparingLog", Step.IDLE, ""),
        ("UpgradeStarts", Step.UPDATE, ""),
    ]
    assert step
    assert image(step) == "3.7.3"


def test_down_only_when_allowed_and_when_etcd_is_ready() -> None:
    down = replace(NEW, version="3.5.35", upgrade=SKIP)
    assert plan(down, whole()).reason == "VersionRefused"
    allowed = replace(down, upgrade=replace(SKIP, allow_downgrade=True))
    step = plan(allowed, whole())
    assert (step.reason, step.step, step.downgrade) == ("EnablingDowngrade", Step.DOWNGRADE, "3.5")
    enabled = versions(running(), ["3.6.16"] * 3, "3.5", downgrade="3.5.0", storage="3.6.0")
    assert (plan(allowed, enabled).reason, plan(allowed, enabled).step) == ("EnablingDowngrade", Step.IDLE)
    lowered = versions(running(), ["3.6.16"] * 3, "3.5", downgrade="3.5.0", storage="3.5.0")
    assert image(plan(allowed, lowered)) == "3.5.35"


def test_a_downgrade_that_is_taken_back_is_called_off_first() -> None:
    noted = Upgrade("3.6.16", "3.5.35", NOW)
    seen = _released("3.5.35", noted)
    seen = versions(seen, ["3.6.16", "3.6.16", "3.5.35"], "3.5", downgrade="3.5.0", storage="3.5.0")
    step = plan(CLUSTER, seen)
    assert (step.reason, step.step, step.downgrade) == ("CancellingDowngrade", Step.DOWNGRADE, "")
    assert image(plan(CLUSTER, versions(seen, ["3.6.16", "3.6.16", "3.5.35"], "3.5", storage="3.5.0"))) == "3.6.16"


# -- back, and the end


def _released(version: str, noted: Upgrade) -> Observed:
    """Pods that restart run this; none has yet."""
    cluster = replace(CLUSTER, version=version)
    seen = whole()
    files = dict(seen.objects["ConfigMap/e-config"]["data"])
    objects = {f"{each['kind']}/{each['metadata']['name']}": each for each in manifests.objects(cluster, 3, files, 3)}
    return replace(seen, objects=objects, upgrade=noted, phase=Phase.UPGRADING)


@pytest.mark.parametrize("version", ["3.5.35", "3.6.17"])
def test_a_goal_is_put_right_though_a_member_is_down_for_it(version: str) -> None:
    """Back to what was, or on to a version that exists; the snapshot from before is there."""
    seen = _released("3.6.99", Upgrade("3.5.35", "3.6.99", NOW, "e-before"))
    seen = without(versions(seen, ["3.5.35"] * 3, "3.5"), 2, problem="ImagePullBackOff", version="3.6.99")
    release = plan(replace(NEW, version=version), seen)
    assert (release.reason, image(release)) == ("UpgradeStarts", version)


def test_another_minor_version_waits_until_the_one_under_way_is_done() -> None:
    seen = _released("3.6.99", Upgrade("3.6.16", "3.6.99", NOW, "e-before"))
    assert plan(NEXT, without(seen, 2)).reason in ("UpgradeWaits", "WaitingForMember")
    assert plan(NEXT, seen).restart == "e-2"  # towards what was released


def test_without_a_quorum_the_goal_can_still_be_put_right() -> None:
    seen = _released("3.6.99", Upgrade("3.5.35", "3.6.99", NOW, "e-before"))
    pods = tuple(replace(pod, problem="ImagePullBackOff", version="3.6.99") for pod in seen.pods)
    lost = replace(seen, answers={}, members=None, pods=pods)
    assert image(plan(replace(NEW, version="3.5.35"), lost)) == "3.5.35"
    assert image(plan(NEXT, lost)) == ""
    released = applied(lost, plan(replace(NEW, version="3.5.35"), lost))
    assert plan(replace(NEW, version="3.5.35"), released).delete_pods == ("e-0", "e-1", "e-2")


@pytest.mark.parametrize(
    ("source", "word"), [("3.6.16", "Upgraded"), ("3.6.18", "Downgraded"), ("3.6.17", "RolledBack")]
)
def test_the_end_is_told_once(source: str, word: str) -> None:
    cluster = replace(NEW, version="3.6.17")
    seen = _moved(cluster, Upgrade(source, "3.6.17", NOW))
    done = plan(cluster, seen)
    before = {"phase": "Upgrading", "observedGeneration": 2}
    assert events(cluster, done, before)[0].reason == word
    told = status(cluster, seen, done, before)
    assert told["upgrade"]["completed"]
    assert (told["clusterVersion"], told["storageVersion"]) == ("3.6", "3.6")
    assert {c["type"]: c["status"] for c in told["conditions"]}["Upgraded"] == "True"
    seen = replace(seen, upgrade=done.upgrade, phase=done.phase)
    assert [each.reason for each in events(cluster, plan(cluster, seen), told)] == []


def test_it_is_done_though_claims_can_not_grow() -> None:
    cluster = replace(NEW, version="3.6.17", storage=replace(NEW.storage, size="2Gi"))
    seen = _moved(replace(NEW, version="3.6.17"), Upgrade("3.6.16", "3.6.17", NOW))
    claims = tuple(replace(claim, wanted="1Gi", size="1Gi") for claim in seen.claims)
    seen = replace(seen, claims=claims, unexpandable=("rigid",))
    done = plan(cluster, seen)
    assert done.reason == "ExpansionRefused"
    told = status(cluster, seen, done, {"phase": "Upgrading"})
    assert told["upgrade"]["completed"]
    assert {c["type"]: c["status"] for c in told["conditions"]}["Upgraded"] == "True"
    assert "Upgraded" in [each.reason for each in events(cluster, done, {"phase": "Upgrading"})]


def test_it_is_not_done_before_etcd_has_agreed() -> None:
    cluster = replace(NEW, version="3.6.17")
    seen = versions(_moved(cluster, Upgrade("3.5.35", "3.6.17", NOW)), ["3.6.17"] * 3, "3.5")
    waits = plan(cluster, seen)
    assert (waits.phase, waits.reason) == (Phase.UPGRADING, "WaitingForClusterVersion")
    told = status(cluster, seen, waits, {})
    assert {c["type"]: c["status"] for c in told["conditions"]}["Upgraded"] == "False"


def _moved(cluster: Cluster, noted: Upgrade) -> Observed:
    """Every member runs it."""
    seen = _released(cluster.version, noted)
    made = manifests.template_hash(seen.objects["StatefulSet/e"])
    pods = tuple(replace(pod, template_hash=made, version=cluster.version) for pod in seen.pods)
    return versions(replace(seen, pods=pods), [cluster.version] * 3, "3.6")


def test_files_are_for_the_older_of_what_a_pod_runs_and_will_run() -> None:
    options = {"extra": {"corrupt-check-time": "1h"}}
    cluster = replace(NEW, options=options, upgrade=SKIP)
    release = plan(cluster, versions(running(), ["3.5.35"] * 3, "3.5"))
    files = next(each["data"] for each in release.apply if each["kind"] == "ConfigMap")
    assert all("\nexperimental-corrupt-check-time:" in text for text in files.values())
    seen = versions(after(running(), release), ["3.5.35"] * 3, "3.5")
    roll = plan(cluster, seen)
    files = next(each["data"] for each in roll.apply if each["kind"] == "ConfigMap")
    assert roll.restart == "e-2"
    assert ["\ncorrupt-check-time:" in files[f"e-{number}.yaml"] for number in range(3)] == [False, False, True]


def test_a_name_is_never_too_long() -> None:
    long = replace(NEW, name="a" * 40, target="3.6.199")
    assert len(upgrade._named(long, Upgrade("3.6.16", "3.6.199", NOW)).snapshot) == 55


def test_what_the_user_says() -> None:
    said = {
        "allowDowngrade": True,
        "snapshot": {"mode": "Required", "destination": {"claim": {"name": "a"}}, "keepFor": "7d"},
    }
    meta, spec = {"name": "e", "namespace": "d", "uid": "u"}, {"size": 3, "version": "3.6.16"}
    assert read({"metadata": meta, "spec": spec}).upgrade == UpgradeSpec(backup={"destination": {"newClaim": {}}})
    wanted = UpgradeSpec(True, True, {"destination": {"claim": {"name": "a"}}}, timedelta(days=7))
    assert read({"metadata": meta, "spec": {**spec, "upgrade": said}}).upgrade == wanted


def test_a_snapshot_is_not_taken_again_while_etcd_gets_ready() -> None:
    """However long that takes: the upgrade has begun."""
    down = replace(NEW, version="3.5.35", upgrade=replace(NEW.upgrade, allow_downgrade=True))
    seen = backed_up(after(whole(), plan(down, whole())), "Succeeded")
    told = plan(down, seen)
    assert (told.reason, told.downgrade) == ("EnablingDowngrade", "3.5")
    later = replace(after(seen, told), now=NOW + timedelta(hours=1))
    waiting = versions(later, ["3.6.16"] * 3, "3.6", downgrade="3.5.0")
    assert plan(down, waiting).reason == "EnablingDowngrade"
    assert plan(down, later).reason == "TakingSnapshot"  # it was called off

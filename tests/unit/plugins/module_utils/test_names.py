"""Two custom resources in a namespace never derive the same name for objects of the same kind.

A derived name is the name of its custom resource and a suffix. Two of them are equal only if one suffix ends with the
other, or if they are the same suffix for different kinds of custom resources. So it is enough to compare suffixes; what
varies in them, such as the digits of a uid, may be any of its characters. Names that users choose are not derived: the
operator leaves an object alone that has such a name and is not its own.
"""

from __future__ import annotations

import itertools
import string
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from ansible_collections.etcdops.etcd.plugins.module_utils.api.backup import Backup, parse_destination
from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import Cluster
from ansible_collections.etcdops.etcd.plugins.module_utils.api.restore import Restore
from ansible_collections.etcdops.etcd.plugins.module_utils.api.schedule import Schedule
from ansible_collections.etcdops.etcd.plugins.module_utils.backup import jobs as backup_jobs
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster import (
    authorities,
    certificates,
    deletion,
    manifests,
    upgrade_snapshot,
)
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.memory import Upgrade
from ansible_collections.etcdops.etcd.plugins.module_utils.restore import jobs as restore_jobs
from ansible_collections.etcdops.etcd.plugins.module_utils.restore import planner as restore_planner

from .cluster.builders import nothing, situation

NAME, LONG = "the-name", "l" * 40  # the longest name of an EtcdCluster
UID = "0f1e2d3c-4b5a-4978-8695-a4b3c2d1e0f9"
NOW = datetime(2026, 11, 16, 12, 30, 15, tzinfo=UTC)
HEX, DIGITS = set("0123456789abcdef"), set(string.digits)
CLUSTER = Cluster(NAME, "ns", UID, 1, 3, "3.6.16")
ORDINALS = (0, 9, 10)  # one digit and two


@dataclass(frozen=True)
class Derived:
    """The name of an object: what may be at each place of its suffix."""

    owner: str  # the kind of the custom resource
    kind: str
    prefix: str
    suffix: tuple[frozenset[str], ...]
    name: str


def _derived(owner: str, kind: str, name: str, varying: str = "", any_of: set[str] = DIGITS) -> Derived:
    """`varying` is what differs between objects of the same suffix, and consists of `any_of`."""
    prefix, _, suffix = name.partition(NAME)
    fixed, found, rest = suffix.rpartition(varying) if varying else (suffix, "", "")
    assert not varying or (found and not rest), name
    places = [frozenset(each) for each in fixed]
    places += [frozenset(any_of) if each in any_of else frozenset(each) for each in found]
    return Derived(owner, kind, prefix, tuple(places), name)


def _of_clusters() -> Iterator[Derived]:
    for each in manifests.objects(CLUSTER, CLUSTER.version, 3, {}, 3):
        yield _derived("EtcdCluster", each["kind"], each["metadata"]["name"])
    for name in certificates.secret_names(CLUSTER):
        yield _derived("EtcdCluster", "Secret", name)
    for number in ORDINALS:
        pod = CLUSTER.pod_name(number)
        claim = manifests.claim_manifest(CLUSTER, pod)["metadata"]["name"]
        yield _derived("EtcdCluster", "Pod", pod, str(number))
        yield _derived("EtcdCluster", "PersistentVolumeClaim", claim, str(number))
    yield _derived("EtcdCluster", "EtcdBackup", deletion.final_snapshot_name(CLUSTER), UID[:8], HEX)
    for name in (NAME, LONG):
        cluster = replace(CLUSTER, name=name, version="3.6.17")
        s = replace(situation(cluster, nothing()), target="3.6.17")
        snapshot = upgrade_snapshot._named(s, Upgrade("3.6.16", "3.6.17", NOW)).snapshot
        assert len(snapshot) <= 55
        yield _derived("EtcdCluster", "EtcdBackup", snapshot.replace(name, NAME), snapshot[-5:], HEX)


def _of_backups() -> Iterator[Derived]:
    store = parse_destination({"newClaim": {}}, NAME)
    backup = Backup(NAME, "ns", UID, 1, "example", store)
    yield _derived("EtcdBackup", "PersistentVolumeClaim", backup.own_claim)
    for job in (backup_jobs.job_name(backup), backup_jobs.cleanup_name(backup)):
        yield from _job("EtcdBackup", job)


def _of_restores() -> Iterator[Derived]:
    restore = Restore(NAME, "ns", UID, 1, "example", in_place=True)
    yield from _job("EtcdRestore", restore_jobs.source_name(restore))
    for verb, number in itertools.product(("member", "putback", "tidy"), ORDINALS):
        yield from _job("EtcdRestore", restore_jobs.member_name(restore, verb, number), str(number))
    yield _derived("EtcdRestore", "Secret", restore_jobs.transfer_name(restore), UID[:8], HEX)
    yield _derived("EtcdRestore", "EtcdBackup", restore_planner.backup_name(restore), UID[:8], HEX)


def _of_schedules() -> Iterator[Derived]:
    name = Schedule(NAME, "ns", UID, 1, NOW, "example", "@daily").tick(NOW)
    yield _derived("EtcdBackupSchedule", "EtcdBackup", name, "20261116-123015")


def _job(owner: str, name: str, varying: str = "") -> Iterator[Derived]:
    """A Job, and its pods: Kubernetes appends five characters, none of which is a vowel."""
    yield _derived(owner, "Job", name, varying)
    yield _derived(owner, "Pod", f"{name}-24567", "24567", set("bcdfghjklmnpqrstvwxz2456789"))


def _all() -> list[Derived]:
    return [*_of_clusters(), *_of_backups(), *_of_restores(), *_of_schedules()]


def _may_be_equal(one: Derived, other: Derived) -> bool:
    """Whether two custom resources may derive the same name."""
    if one.prefix != other.prefix and not (one.prefix == "" or other.prefix == ""):
        return False
    if one.owner == other.owner and len(one.suffix) == len(other.suffix) and one.prefix == other.prefix:
        return False  # equal names have equal suffixes, and so the same custom resource
    places = zip(reversed(one.suffix), reversed(other.suffix), strict=False)
    return all(left & right for left, right in places)


def _collisions(found: list[Derived]) -> list[tuple[str, str]]:
    kinds = defaultdict(list)
    for each in found:
        kinds[each.kind].append(each)
    pairs = (pair for each in kinds.values() for pair in itertools.combinations(each, 2))
    return [(one.name, other.name) for one, other in pairs if _may_be_equal(one, other)]


def test_no_two_custom_resources_derive_the_same_name() -> None:
    found = _all()
    assert {each.kind for each in found} == {
        "ConfigMap",
        "EtcdBackup",
        "Job",
        "PersistentVolumeClaim",
        "Pod",
        "PodDisruptionBudget",
        "Secret",
        "Service",
        "StatefulSet",
    }
    assert _collisions(found) == []


def test_earlier_names_of_cas_are_found_to_collide_with_each_other_only() -> None:
    names = [authorities.former_name(CLUSTER, which) for which in certificates.AUTHORITIES]
    former = [_derived("EtcdCluster", "Secret", name) for name in names]
    assert _collisions([*_all(), *former]) == [("the-name-ca", "the-name-peer-ca")]

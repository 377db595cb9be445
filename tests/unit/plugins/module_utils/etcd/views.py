"""Cluster views for tests, from answers as members give them."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import EtcdError
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.types import Member, MemberList, Status
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.view import Answer, ClusterView, build

CLUSTER = 7


def url(number: int) -> str:
    return f"http://m{number}:2379"


def member(number: int, *, learner: bool = False) -> Member:
    return Member(number, f"m{number}", (f"http://m{number}:2380",), (url(number),), learner)


def listed(*members: Member) -> MemberList:
    return MemberList(CLUSTER, members)


def status(number: int, *, leader: int = 1, term: int = 2, applied: int = 9, version: str = "3.6.16") -> Status:
    return Status(number, CLUSTER, version, "3.6.0", leader, term, applied, applied, 1, 1, 1, False, ())


def healthy(found: Status, members: MemberList, cluster_version: str = "3.6.0") -> Answer:
    return Answer(found, "", members, agreed=True, cluster_version=cluster_version)


def learner(number: int) -> Answer:
    return Answer(replace(status(number), is_learner=True))


def view(answers: dict[int, Answer | EtcdError]) -> ClusterView:
    """The view from the answers of members."""
    return build({url(number): answer for number, answer in answers.items()})


def three(*statuses: Status, cluster_version: str = "3.6.0") -> ClusterView:
    """Three healthy voters."""
    members = listed(*map(member, (1, 2, 3)))
    return view({one.member_id: healthy(one, members, cluster_version) for one in statuses})

"""Members, status and alarms as etcd reports them, and how its JSON answers are parsed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Member:
    """An entry of the member list. `name` and `client_urls` are empty until the member has started once."""

    id: int
    name: str
    peer_urls: tuple[str, ...]
    client_urls: tuple[str, ...]
    is_learner: bool


@dataclass(frozen=True)
class MemberList:
    cluster_id: int
    members: tuple[Member, ...]


@dataclass(frozen=True)
class Status:
    """What one member reports of itself. `leader_id` is 0 when it knows none; `storage_version` is empty in 3.5."""

    member_id: int
    cluster_id: int
    version: str
    storage_version: str
    leader_id: int
    raft_term: int
    raft_index: int
    raft_applied_index: int
    revision: int
    db_size: int
    db_size_in_use: int
    is_learner: bool
    errors: tuple[str, ...]  # alarms, as text, and "no leader"
    downgrade: str = ""  # the target of a pending downgrade; 3.5 does not report it
    db_size_quota: int = 0  # the size at which it refuses writes; 3.5 does not report it


@dataclass(frozen=True, order=True)
class Alarm:
    member_id: int  # 0 when etcd does not know whose data is corrupt
    alarm: str  # NOSPACE or CORRUPT


def parse_member(answer: dict[str, Any]) -> Member:
    return Member(
        id=int(answer.get("ID", 0)),
        name=answer.get("name", ""),
        peer_urls=tuple(answer.get("peerURLs", [])),
        client_urls=tuple(answer.get("clientURLs", [])),
        is_learner=answer.get("isLearner", False),
    )


def parse_member_list(answer: dict[str, Any]) -> MemberList:
    members = tuple(parse_member(member) for member in answer.get("members", []))
    return MemberList(int(answer["header"].get("cluster_id", 0)), members)


def parse_status(answer: dict[str, Any]) -> Status:
    header, downgrade = answer["header"], answer.get("downgradeInfo", {})

    def number(name: str) -> int:
        return int(answer.get(name, 0))

    return Status(
        member_id=int(header.get("member_id", 0)),
        cluster_id=int(header.get("cluster_id", 0)),
        version=answer.get("version", ""),
        storage_version=answer.get("storageVersion", ""),
        leader_id=number("leader"),
        raft_term=number("raftTerm"),
        raft_index=number("raftIndex"),
        raft_applied_index=number("raftAppliedIndex"),
        revision=int(header.get("revision", 0)),
        db_size=number("dbSize"),
        db_size_in_use=number("dbSizeInUse"),
        is_learner=answer.get("isLearner", False),
        errors=tuple(answer.get("errors", [])),
        downgrade=downgrade.get("targetVersion", "") if downgrade.get("enabled") else "",
        db_size_quota=number("dbSizeQuota"),
    )

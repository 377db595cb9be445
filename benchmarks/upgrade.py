"""Rolling upgrade of three members, compared with deleted pods of a hand-made StatefulSet."""

from __future__ import annotations

import time

from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.client import Client
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import EtcdError
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.fanout import ask_all

from sandbox.run import say, wait_for

from . import clusters, figures
from .bootstrap import same_objects
from .figures import Figures, Upgrade, Writing
from .kube import TIMEOUT, apply, is_healthy_with, namespace, seconds_until_healthy
from .members import NAME, Members, delete_pod, members_of, wait_until_settled, while_writing

_FROM, _TO = "3.6.16", "3.7.3"


def upgrade(rounds: int = 3) -> Figures:
    with namespace(f"{clusters.PREFIX}upgrade-by-hand") as where:
        say("measuring a hand-made StatefulSet")
        apply(*same_objects(where, NAME, 3))
        seconds_until_healthy(where, [NAME], 3, time.monotonic())
        members = members_of(where)
        pods = [delete_pod(members) for _ in range(rounds)]
        followers = [while_writing(members, lambda: delete_pod(members))[1] for _ in range(rounds)]
        leaders = [while_writing(members, lambda: delete_pod(members, leader=True))[1] for _ in range(rounds)]
    upgrades = [_upgrade() for _ in range(rounds)]
    return figures.upgrade(
        Upgrade(
            pod_by_hand_s=tuple(pods),
            follower_by_hand=tuple(followers),
            leader_by_hand=tuple(leaders),
            upgrade_s=tuple(total for (total, _), _ in upgrades),
            roll_s=tuple(rollout for (_, rollout), _ in upgrades),
            upgrade=tuple(writing for _, writing in upgrades),
        )
    )


def _upgrade() -> tuple[tuple[float, float], Writing]:
    """Upgrade a new cluster, because an upgraded one cannot be upgraded to the same version again."""
    with namespace(f"{clusters.PREFIX}upgrade") as where:
        say(f"measuring the upgrade from {_FROM} to {_TO}")
        apply(clusters.cluster(where, NAME, version=_FROM))
        wait_until_settled(where)
        members = members_of(where)
        found = while_writing(members, lambda: _roll_out(members))
        wait_until_settled(where)
    return found


def _roll_out(members: Members) -> tuple[float, float]:
    """Seconds until all members run the new version and are healthy: from the spec change, from the first deletion."""
    before = {pod["metadata"]["uid"] for pod in members.pods()}
    started = time.monotonic()
    members.kube.apply(clusters.cluster(members.where, NAME, version=_TO))
    wait_for("the first pod to be deleted", lambda: _is_any_deleted(members, before), timeout=TIMEOUT, every=0.05)
    first = time.monotonic()
    wait_for(f"three healthy members with version {_TO}", lambda: _all_run(members, _TO), timeout=TIMEOUT, every=0.05)
    return time.monotonic() - started, time.monotonic() - first


def _is_any_deleted(members: Members, before: set[str]) -> bool:
    remaining = {pod["metadata"]["uid"] for pod in members.pods() if "deletionTimestamp" not in pod["metadata"]}
    return not before <= remaining


def _all_run(members: Members, version: str) -> bool:
    def ask(client: Client) -> bool:
        return client.status().version == version and is_healthy_with(3)(client)

    clients = members.clients(members.pods())
    return len(clients) == 3 and all(not isinstance(answer, EtcdError) and answer for answer in ask_all(clients, ask))

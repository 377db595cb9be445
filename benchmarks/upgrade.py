"""Three members that are upgraded one after the other, against pods of a hand-made StatefulSet that are deleted."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.client import Client
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.errors import EtcdError
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.fanout import ask_all

from sandbox.run import say, wait_for
from tests.e2e.traffic import writer

from . import clusters, figures
from .bootstrap import same_objects
from .figures import Figures, Upgrade, Writing
from .kube import TIMEOUT, apply, is_whole, namespace, seconds_until_healthy
from .members import NAME, Members, delete_pod, members_of, settled

Done = TypeVar("Done")

_FROM, _TO = "3.6.16", "3.7.3"
_BEFORE, _AFTER = 2.0, 4.0  # seconds that the writer has before something is done, and after


def upgrade(rounds: int = 3) -> Figures:
    with namespace(f"{clusters.PREFIX}upgrade-by-hand") as where:
        say("a hand-made StatefulSet")
        apply(*same_objects(where, NAME, 3))
        seconds_until_healthy(where, [NAME], 3, time.monotonic())
        members = members_of(where)
        pods = [delete_pod(members) for _ in range(rounds)]
        followers = [_written(members, lambda: delete_pod(members))[1] for _ in range(rounds)]
        leaders = [_written(members, lambda: delete_pod(members, leader=True))[1] for _ in range(rounds)]
    upgrades = [_upgrade() for _ in range(rounds)]
    return figures.upgrade(
        Upgrade(
            pod_by_hand_s=tuple(pods),
            follower_by_hand=tuple(followers),
            leader_by_hand=tuple(leaders),
            upgrade_s=tuple(whole for (whole, _), _ in upgrades),
            roll_s=tuple(roll for (_, roll), _ in upgrades),
            upgrade=tuple(writing for _, writing in upgrades),
        )
    )


def _upgrade() -> tuple[tuple[float, float], Writing]:
    """A cluster of its own each time: a version only goes up."""
    with namespace(f"{clusters.PREFIX}upgrade") as where:
        say(f"{_FROM} to {_TO} by the operator")
        apply(clusters.cluster(where, NAME, version=_FROM))
        settled(where)
        members = members_of(where)
        found = _written(members, lambda: _roll(members))
        settled(where)
    return found


def _roll(members: Members) -> tuple[float, float]:
    """Seconds until every member serves with the new version: from the edit, and from the end of the first pod."""
    before = {pod["metadata"]["uid"] for pod in members.pods()}
    started = time.monotonic()
    members.kube.apply(clusters.cluster(members.where, NAME, version=_TO))
    wait_for("the first pod to end", lambda: _is_one_gone(members, before), timeout=TIMEOUT, every=0.05)
    first = time.monotonic()
    wait_for(f"three members of {_TO}", lambda: _all_run(members, _TO), timeout=TIMEOUT, every=0.05)
    return time.monotonic() - started, time.monotonic() - first


def _is_one_gone(members: Members, before: set[str]) -> bool:
    staying = {pod["metadata"]["uid"] for pod in members.pods() if "deletionTimestamp" not in pod["metadata"]}
    return not before <= staying


def _all_run(members: Members, version: str) -> bool:
    def ask(client: Client) -> bool:
        return client.status().version == version and is_whole(3)(client)

    clients = members.clients(members.pods())
    return len(clients) == 3 and all(not isinstance(answer, EtcdError) and answer for answer in ask_all(clients, ask))


def _written(members: Members, do: Callable[[], Done]) -> tuple[Done, Writing]:
    """What came of it, and what a writer saw meanwhile."""
    wait_for("three members", lambda: members.are_whole(3), timeout=TIMEOUT, every=0.2)
    writer.start(members.where, NAME)
    time.sleep(_BEFORE)
    done = do()
    time.sleep(_AFTER)
    seen = writer.end(members.where, NAME)
    say(f"a gap of {seen.longest_gap_s} s; {seen.failed} requests failed: {seen.failures}")
    return done, Writing(seen.longest_gap_s, seen.failed)

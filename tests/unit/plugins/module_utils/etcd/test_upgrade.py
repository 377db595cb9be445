"""The outlook of an upgrade; tests/unit/plugins/modules/test_etcd_upgrade.py takes real clusters along it."""

from __future__ import annotations

from dataclasses import replace

from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.types import Alarm
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.upgrade import outlook
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.view import ClusterView

from .views import healthy, learner, listed, member, status, three, view


def test_followers_come_first_and_nothing_blocks() -> None:
    ahead = outlook(three(status(1), status(2), status(3)), "3.6.17", allow_downgrade=False)
    assert (ahead.refused, ahead.done, ahead.waits) == ("", False, "")
    assert ahead.order == ("m3", "m2", "m1")
    assert (ahead.downgrade, ahead.old_log, ahead.cluster_version) == ("", "", "3.6.0")


def test_upgrade_is_done_when_every_voter_runs_it_and_the_cluster_version_followed() -> None:
    statuses = [status(number, version="3.7.3") for number in (1, 2, 3)]
    waiting = outlook(three(*statuses, cluster_version="3.6.0"), "3.7.3", allow_downgrade=False)
    assert (waiting.done, waiting.order) == (False, ())
    assert waiting.waits.startswith("every member runs 3.7.3; etcd's cluster version is 3.6.0")
    assert outlook(three(*statuses, cluster_version="3.7.0"), "3.7.3", allow_downgrade=False).done


def test_old_log_entries_are_dropped_before_the_first_member_moves_only() -> None:
    assert outlook(three(*map(status, (1, 2, 3))), "3.7.3", allow_downgrade=False).old_log == "3.5"
    moved = three(status(1), status(2), status(3, version="3.7.3"))
    assert outlook(moved, "3.7.3", allow_downgrade=False).old_log == ""


def test_refusal_names_the_options_of_the_module() -> None:
    found = three(*map(status, (1, 2, 3)))
    refused = outlook(found, "3.5.35", allow_downgrade=False).refused
    assert "only if allow_downgrade is true" in refused
    assert "spec." not in refused
    allowed = outlook(found, "3.5.35", allow_downgrade=True)
    assert (allowed.refused, allowed.downgrade) == ("", "3.5")


def _waits(found: ClusterView) -> str:
    return outlook(found, "3.6.17", allow_downgrade=False).waits


def test_learner_blocks_the_restart() -> None:
    members = listed(member(1), member(4, learner=True))
    found = view({1: healthy(status(1), members), 4: learner(4)})
    assert _waits(found) == "m4 is a learner: promote or remove it first"


def test_alarm_blocks_the_restart() -> None:
    found = replace(three(*map(status, (1, 2, 3))), alarms=(Alarm(255, "NOSPACE"),))
    assert _waits(found) == "alarm NOSPACE of ff"


def test_missing_quorum_blocks_the_restart() -> None:
    found = view({1: healthy(status(1), listed(*map(member, (1, 2, 3))))})
    assert _waits(found) == "m3 is not restarted: only 1 of 3 voters would be left"

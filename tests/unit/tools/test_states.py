"""The page of phases; tests/simulation/test_transitions.py checks its transitions."""

from __future__ import annotations

from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import Phase

from tools.generate import states

SEEN = states.Seen(100, {("Pending", "Bootstrapping"): 90, ("Bootstrapping", "Running"): 80, ("Pending", "Paused"): 1})


def test_data_is_stored_in_the_order_of_the_phases() -> None:
    text = states.DATA.read_text()
    seen = states.parse(text)
    assert states.dump(seen) == text
    assert seen.schedules >= 3000
    assert all(0 < number <= seen.schedules for number in seen.transitions.values())


def test_only_deletion_and_restores_are_missing_in_the_simulation() -> None:
    seen = states.parse(states.DATA.read_text())
    reached = {phase for transition in seen.transitions for phase in transition}
    assert set(Phase) - reached == {Phase.RESTORING, Phase.DELETING}


def test_diagram_has_common_transitions_and_the_table_all() -> None:
    page = states.draw(SEEN)
    assert "    Pending --> Bootstrapping\n" in page
    assert "Pending --> Paused" not in page
    assert "| Pending | Bootstrapping, Paused |\n" in page
    assert all(f"| {phase} | {phase.meaning} |\n" in page for phase in Phase)


def test_undocumented_transition_is_found() -> None:
    assert states.undocumented([("Pending", "Bootstrapping"), ("Running", "Paused")], SEEN) == ["Running -> Paused"]

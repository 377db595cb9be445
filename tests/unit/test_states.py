from __future__ import annotations

from pathlib import Path

from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import TRANSITIONS, Phase, Step

from tools import states

STEPS = Path(__file__).resolve().parents[2] / "roles/etcdcluster/tasks/steps"


def test_the_page_is_what_the_planner_says() -> None:
    assert states.PAGE.read_text() == states.page(), "run: python -m tools.states"


def test_every_phase_is_in_the_diagram() -> None:
    assert {phase for arrow in TRANSITIONS for phase in arrow[:2]} == set(Phase)


def test_every_step_has_its_file_and_no_file_is_without_a_step() -> None:
    assert {path.stem for path in STEPS.glob("*.yml")} == {str(step) for step in Step} - {"idle"}

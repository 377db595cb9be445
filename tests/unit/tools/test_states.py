from __future__ import annotations

from pathlib import Path

from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.plan import TRANSITIONS, Phase, Step

STEPS = Path(__file__).resolve().parents[3] / "roles/etcdcluster/tasks/steps"


def test_diagram_has_every_phase() -> None:
    assert {phase for arrow in TRANSITIONS for phase in arrow[:2]} == set(Phase)


def test_every_step_has_a_task_file_and_the_reverse() -> None:
    assert {path.stem for path in STEPS.glob("*.yml")} == {str(step) for step in Step} - {"idle"}

from __future__ import annotations

from itertools import islice
from typing import cast

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import Kube

from sandbox import layout
from sandbox.errors import SandboxError
from tests.e2e.chaos import faults
from tests.e2e.chaos.__main__ import Run
from tests.e2e.chaos.faults import Target
from tests.e2e.chaos.steps import WEIGHTS, steps


def test_seed_repeats_its_steps() -> None:
    assert list(islice(steps(7), 50)) == list(islice(steps(7), 50))
    assert list(islice(steps(7), 50)) != list(islice(steps(8), 50))


def test_every_step_can_be_done() -> None:
    assert set(faults._DO) == set(WEIGHTS)


def test_seed_of_make_test_has_a_bit_of_everything() -> None:
    """In its minute: lost data, a disturbed node, a disturbed operator, and an edit."""
    kinds = {each.what.split()[0] for each in islice(steps(_seed()), 12)}
    assert {"lose", "node", "edit"} <= kinds
    assert kinds & {"kill", "freeze", "second"}


def _seed() -> int:
    text = (layout.REPOSITORY / "molecule/chaos/verify.yml").read_text()
    return int(next(line.partition(":")[2] for line in text.splitlines() if "etcdops_seed:" in line))


@pytest.mark.parametrize("who", [0.0, 0.5, 0.999])
def test_choice_is_one_of_the_possible(who: float) -> None:
    assert faults._choose("abc", who) in "abc"


def test_every_fault_is_ended_although_one_can_not_be() -> None:
    ended = list[str]()

    def stuck() -> None:
        raise SandboxError("node-1 does not come back")

    run = Run(Target(cast(Kube, None), "ns", "chaos"))
    run._active = [(0.0, "node off", stuck), (0.0, "pause", lambda: ended.append("pause"))]
    with pytest.raises(SandboxError, match="node-1 does not come back"):
        run.end_all()
    assert ended == ["pause"]

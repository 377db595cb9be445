"""Restores without other faults, interrupted before each effect: by a crash, by a deletion, or by another restore."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.restore import observe

from ..etcd import ViolationError
from ..operator import CrashError
from .api import Api
from .schedule import World

IN_PLACE: dict[str, object] = {"inPlace": {"cluster": "example", "confirm": "example"}}
NEW: dict[str, object] = {"newCluster": {"name": "another", "spec": {"size": 3, "version": "3.6.16"}}}


@dataclass
class Interrupted(World):
    """Before effect number `point`, the operator crashes, the other restore is reconciled, or a user deletes objects.

    `how` is "crash", "rival", or the kind of the objects.
    """

    crashes: float = 0
    names: tuple[str, ...] = ("back",)
    how: str = ""
    point: int = -1
    effects: int = 0

    def restore(self, target: dict[str, object], *, quorum: bool) -> None:
        """The schedule, from the EtcdRestore to its end."""
        with self.operator.in_model():
            self.model.faulty = False
            while self._move():
                pass
            if not quorum:
                self.model.lose_quorum("example")
            spec = {"source": {"backup": "first"}, **target}
            for name in self.names:
                self.api.put({"kind": "EtcdRestore", "metadata": {"name": name}, "spec": spec})
            self._end()
        self._check()

    def _before_effect(self, what: str) -> None:
        self.effects += 1
        if self.effects == self.point and self.how == "crash":
            raise CrashError
        if self.effects == self.point and self.how == "rival":
            for name in self.names:
                if name != self.api.actor:
                    self._run("EtcdRestore", name)
        elif self.effects == self.point:
            for name in self._names(self.how):
                self.api.remove(self.how, name)
        super()._before_effect(what)


def _world(how: str = "", point: int = -1) -> Interrupted:
    names = ("back", "again") if how == "rival" else ("back",)
    return Interrupted(Random(1), how=how, point=point, names=names)  # noqa: S311


@pytest.mark.parametrize("quorum", [True, False], ids=["quorum", "quorum lost"])
@pytest.mark.parametrize("target", [IN_PLACE, NEW], ids=["in place", "new"])
@pytest.mark.parametrize("how", ["crash", "EtcdRestore", "EtcdBackup"])
def test_restore_may_be_interrupted_at_every_point(how: str, target: dict[str, object], quorum: bool) -> None:
    plain = _world()
    plain.restore(target, quorum=quorum)
    assert plain.api.objects["EtcdRestore", "back"]["status"]["phase"] == "Succeeded"
    for point in range(1, plain.effects + 1):
        _world(how, point).restore(target, quorum=quorum)


def _duel() -> None:
    """Two restores in place, as far as each other; which one comes first is decided only by the hold."""
    plain = _world("rival")
    plain.restore(IN_PLACE, quorum=True)
    for point in range(1, plain.effects + 1):
        world = _world("rival", point)
        world.restore(IN_PLACE, quorum=True)
        phases = sorted(world.api.objects["EtcdRestore", name]["status"]["phase"] for name in world.names)
        assert phases == ["Failed", "Succeeded"], point


def test_one_of_two_restores_gets_the_hold_at_every_point(monkeypatch: pytest.MonkeyPatch) -> None:
    _duel()
    monkeypatch.setattr(observe, "first_of", lambda *_: "")
    _duel()


def test_hold_without_its_precondition_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observe, "first_of", lambda *_: "")
    annotate = Api.annotate
    monkeypatch.setattr(Api, "annotate", lambda api, *arguments: annotate(api, *arguments[:4]))
    with pytest.raises(ViolationError, match=r"only its holder takes or releases a hold: .* acts on that of"):
        _duel()

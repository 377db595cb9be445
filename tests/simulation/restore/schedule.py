"""Random schedules: reconciles, moves of the model, crashes and users, then a time without faults."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import HELD_BY
from ansible_collections.etcdops.etcd.plugins.module_utils.api.restore import DELETE_PREVIOUS_DATA
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.manifests import UID_LABEL
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest

from ..etcd import ViolationError
from ..operator import CrashError
from .api import Api
from .model import OLD, Model, Volume
from .operator import KINDS, Operator

_SIZE = 3
_STEPS = 150
_ROUNDS = 60  # without faults, until everything has ended


@dataclass
class World:
    random: Random
    crashes: float = 0.04  # before an effect
    others: bool = False  # another program has PVCs of the same names at times
    trace: list[str] = field(default_factory=list)
    api: Api = field(init=False)
    model: Model = field(init=False)
    operator: Operator = field(init=False)
    _depth: int = 0
    _restores: int = 0

    def __post_init__(self) -> None:
        self.api = Api(self._before_effect, self.say)
        self.model = Model(self.random, self.api)
        self.operator = Operator(self.api)
        self._create_cluster()
        self.api.put({"kind": "PersistentVolumeClaim", "metadata": {"name": "disk"}, "spec": {}})
        done = {"phase": "Succeeded", "sha256": "ab", "etcdVersion": "3.6.16", "completionTime": "2025-12-31T00:00:00Z"}
        since = "2025-12-31T00:00:00Z"
        conditions = [{"type": "Complete", "status": "True", "reason": "Succeeded", "lastTransitionTime": since}]
        done |= {"revision": 7, "message": "Taken.", "clusterID": "earlier", "conditions": conditions}  # type: ignore[dict-item]
        self._backup("first", done)

    def say(self, text: str) -> None:
        self.trace.append(f"{self.api.now:5} {text}")

    def run(self) -> None:
        with self.operator.in_model():
            for _ in range(self.random.choice((1, 1, 2))):
                self._restore()
            for _ in range(_STEPS):
                self._step()
            self._end()
        self._check()

    # -- what there is at the beginning, and what users do

    def _create_cluster(self) -> None:
        meta = {"name": "example"}
        made = self.api.put({"kind": "EtcdCluster", "metadata": meta, "spec": {"size": _SIZE, "version": "3.6.16"}})
        for number in range(_SIZE):
            labels = {"etcdops.dev/cluster": "example", UID_LABEL: made["metadata"]["uid"]}
            meta = {"name": f"data-example-{number}", "labels": labels}  # type: ignore[dict-item]
            claim = self.api.put({"kind": "PersistentVolumeClaim", "metadata": meta, "spec": {}})
            self.model.volumes[claim["metadata"]["uid"]] = Volume({"data": OLD})

    def _backup(self, name: str, status: dict[str, Any] | None = None) -> None:
        destination = {"claim": {"name": "disk"}}
        keep = {"storage": self.random.choice(("Retain", "Delete"))}
        spec = {"cluster": "example", "destination": destination, "deletion": keep}
        self.api.put({"kind": "EtcdBackup", "metadata": {"name": name}, "spec": spec}, status)

    def _restore(self) -> None:
        """Another restore, mostly of the same cluster."""
        if self._restores == 3:
            return
        self._restores += 1
        name, source = f"back-{self._restores}", "first"
        if self.random.random() < 0.3:  # from a backup that has just been started
            source = f"fresh-{self._restores}"
            self._backup(source)
        target: Manifest = {"inPlace": {"cluster": "example", "confirm": "example"}}
        if self.random.random() < 0.2:
            target["inPlace"]["snapshot"] = "Skip"
        if self.random.random() < 0.35:
            target = {"newCluster": {"name": "another", "spec": {"size": _SIZE, "version": "3.6.16"}}}
        self.say(f"user creates {name} from {source}: {target}")
        self.api.put(
            {"kind": "EtcdRestore", "metadata": {"name": name}, "spec": {"source": {"backup": source}, **target}}
        )

    def _fault(self) -> None:
        kinds = ["EtcdRestore", "EtcdRestore", "EtcdBackup"]
        match self.random.choice(("delete", "delete", "restore", "quorum", "hold", "previous")):
            case "delete":
                self._delete(self.random.choice(kinds))
            case "restore":
                self._restore()
            case "quorum" if not self._is_starting():  # a restored cluster without quorum waits for a person
                self.model.lose_quorum("example")
            case "hold":
                self._remove_hold()
            case "previous":
                for name in self._names("EtcdRestore"):
                    if self.random.random() < 0.3:
                        self.api.change("EtcdRestore", name, annotations={DELETE_PREVIOUS_DATA: "true"})

    def _toggle_foreign_claim(self) -> None:
        """Another program creates a PVC with the name of one of the new EtcdCluster; or it is deleted with its data."""
        name = "data-another-0"
        found = self.api.objects.get(("PersistentVolumeClaim", name))
        if found is None:
            self.say(f"another program creates {name}")
            made = self.api.put({"kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": {}})
            self.model.volumes[made["metadata"]["uid"]] = Volume({"data": "theirs"})
            self.model.used.add("theirs")
        elif "labels" not in found["metadata"]:
            self.say(f"the other program deletes {name}")
            self.model.volumes[found["metadata"]["uid"]].folders.clear()
            self.api.remove("PersistentVolumeClaim", name)

    def _is_starting(self) -> bool:
        restores = [self.api.objects["EtcdRestore", name] for name in self._names("EtcdRestore")]
        return any(each.get("status", {}).get("phase") == "Starting" for each in restores)

    def _delete(self, kind: str) -> None:
        names = [name for name in self._names(kind) if name != "first"]
        if names:
            name = self.random.choice(names)
            self.say(f"user deletes {kind} {name}")
            self.api.remove(kind, name)

    def _remove_hold(self) -> None:
        """A user removes the annotation of a cluster whose members still have all their data, by mistake."""
        cluster = self.api.objects["EtcdCluster", "example"]
        if set(self.model.data(cluster)) != {OLD} or any(kind == "Job" for kind, _ in self.api.objects):
            return
        self.say("user removes the hold")
        self.api.change("EtcdCluster", "example", annotations={})

    def _names(self, kind: str) -> list[str]:
        return [name for one, name in self.api.objects if one == kind]

    # -- a schedule

    def _step(self) -> None:
        self.api.now += self.random.randint(0, 10)
        if self.others and self.random.random() < 0.04:
            self._toggle_foreign_claim()
        dice = self.random.random()
        if dice < 0.5:
            self._reconcile()
        elif dice < 0.95:
            self._move()
        else:
            self._fault()

    def _reconcile(self) -> None:
        objects = [(kind, name) for kind in KINDS for name in self._names(kind) if (kind, name) != self._current]
        if objects:
            self._run(*self.random.choice(objects))

    _current: tuple[str, str] = ("", "")  # an object is never reconciled twice at the same time

    def _run(self, kind: str, name: str) -> bool:
        """One reconcile; whether it had nothing to do."""
        outer, self._current = self._current, (kind, name)
        try:
            plan = self.operator.run(kind, name)
        finally:
            self._current = outer
        return plan is not None and plan.action is None

    def _move(self) -> bool:
        moves = self.model.moves()
        if moves:
            self.random.choice(moves)()
        return bool(moves)

    def _before_effect(self, what: str) -> None:
        """Others act, or the operator is killed: between the decision and its effect."""
        if self.random.random() < self.crashes:
            self.say(f"{self.api.actor}: crash before {what}")
            raise CrashError
        if self.crashes and self._depth == 0 and self.random.random() < 0.25:
            self._depth += 1
            self._move() if self.random.random() < 0.5 else self._reconcile()
            self._depth -= 1
        self.say(f"{self.api.actor}: {what}")

    def _end(self) -> None:
        """No more faults: until nothing happens in a whole round."""
        self.crashes, self.model.faulty = 0, False
        found = self.api.objects.get(("PersistentVolumeClaim", "data-another-0"))
        if found and "labels" not in found["metadata"]:
            self._toggle_foreign_claim()
        for _ in range(_ROUNDS):
            before = len(self.trace)
            while self._move():
                pass
            self.api.now += 200
            objects = [(kind, name) for kind in KINDS for name in self._names(kind)]
            quiet = [self._run(kind, name) for kind, name in objects]
            if all(quiet) and len(self.trace) == before and not self.model.moves():
                return

    # -- what must hold at the end

    def _check(self) -> None:
        for kind in KINDS:
            for name in self._names(kind):
                found = self.api.objects[kind, name]
                phase = found.get("status", {}).get("phase")
                ended = phase in ("Succeeded", "Failed") and "deletionTimestamp" not in found["metadata"]
                self._hold_that(ended, "everything reaches a terminal phase", (kind, name, phase))
        clusters = {name: self.api.objects["EtcdCluster", name] for name in self._names("EtcdCluster")}
        for name, cluster in clusters.items():
            annotations = cluster["metadata"].get("annotations", {})
            self._hold_that(HELD_BY not in annotations, "no cluster stays held", (name, annotations))
            phase = cluster.get("status", {}).get("phase")
            self._hold_that(phase in ("Running", "QuorumLost"), "every cluster runs", (name, cluster.get("status")))
        jobs = [name for kind, name in self.api.objects if kind == "Job"]
        self._hold_that(not jobs, "no Job is left", jobs)
        uids = {each["metadata"]["uid"] for each in clusters.values()}
        claims = [self.api.objects["PersistentVolumeClaim", name] for name in self._names("PersistentVolumeClaim")]
        owners = {each["metadata"].get("labels", {}).get(UID_LABEL) for each in claims} - {None}
        self._hold_that(owners <= uids, "no PVC is left of a cluster that was removed", owners - uids)
        self._check_previous_data()

    def _check_previous_data(self) -> None:
        """Previous data that is kept after a success is told."""
        for name in self._names("EtcdRestore"):
            found = self.api.objects["EtcdRestore", name]
            folder = f"before-{found['metadata']['uid'][:8]}"
            left = any(folder in volume.folders for volume in self.model.volumes.values())
            told = folder in found["status"].get("previousData", "")
            if found["status"]["phase"] == "Succeeded":
                self._hold_that(told or not left, "previous data that is kept is told", name)

    def _hold_that(self, holds: bool, what: str, found: object) -> None:
        if not holds:
            raise ViolationError(f"{what}: {found}")


def play(seed: int) -> list[str]:
    """Run one schedule; its trace. ViolationError contains seed and trace."""
    world = World(Random(seed), others=seed % 8 == 0)  # noqa: S311
    try:
        world.run()
    except ViolationError as error:
        trace = "\n".join(world.trace)
        message = f"{error}\nseed {seed}; python -m tests.simulation.restore --seed {seed} replays it:\n{trace}"
        raise ViolationError(message) from None
    return world.trace


def play_all(seeds: int) -> None:
    for seed in range(seeds):
        play(seed)

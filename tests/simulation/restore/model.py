"""Model of what runs beside the operator: Jobs and their pods, volumes, a store of snapshots, and EtcdClusters.

Each possible next step is a move; a schedule executes some of them in any order. Invariants about data are checked
where data is deleted or used.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any

from ansible_collections.etcdops.etcd.plugins.module_utils.api.cluster import HELD_BY
from ansible_collections.etcdops.etcd.plugins.module_utils.api.restore import DELETE_PREVIOUS_DATA
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.manifests import UID_LABEL
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.manifest import Manifest

from ..etcd import ViolationError
from .api import Api

OLD = "old"  # the cluster ID of the cluster that exists from the beginning
PARTIAL = "partial"  # data that a killed etcdutl has left
Move = Callable[[], None]
_CHECKED = json.dumps({"hash": 255, "revision": 7, "totalKey": 9, "version": "3.6.0"})


@dataclass
class Volume:
    """The cluster ID of the data in each folder; `data` is what a member starts with."""

    folders: dict[str, str] = field(default_factory=dict)


@dataclass
class Model:
    random: Random
    api: Api
    faulty: bool = True  # Jobs may fail
    volumes: dict[str, Volume] = field(default_factory=dict)  # by the uid of the PVC
    snapshots: dict[str, str] = field(default_factory=dict)  # by location: the cluster ID, of verified snapshots
    used: set[str] = field(
        default_factory=lambda: {OLD}
    )  # the IDs of clusters that have run: their data must not be lost
    _done: dict[str, int] = field(default_factory=dict)  # by pod: how many of its containers have ended

    def moves(self) -> list[Move]:
        jobs = [each for (kind, _), each in self.api.objects.items() if kind == "Job"]
        pods = [pod for (kind, _), pod in self.api.objects.items() if kind == "Pod" and "job" in pod]
        clusters = [each for (kind, _), each in self.api.objects.items() if kind == "EtcdCluster"]
        found = [move for each in jobs for move in self._job_moves(each)]
        found += [partial(self._step, pod) for pod in pods if self._is_active(pod)]
        found += [partial(self._drop_pod, pod) for pod in pods if ("Job", pod["job"]) not in self.api.objects]
        found += [move for each in clusters for move in self._cluster_moves(each)]
        return found + self._claim_moves()

    # -- Jobs

    def _job_moves(self, job: Manifest) -> list[Move]:
        owner = job["metadata"]["ownerReferences"][0]
        if not any(each["metadata"]["uid"] == owner["uid"] for each in self.api.objects.values()):
            return [partial(self.api.remove, "Job", job["metadata"]["name"])]  # garbage collection
        pods = [pod for (kind, _), pod in self.api.objects.items() if kind == "Pod" and pod.get("job") == _name(job)]
        if "status" in job or any(pod["status"]["phase"] in ("Pending", "Running") for pod in pods):
            return []
        failed = [pod for pod in pods if pod["status"]["phase"] == "Failed"]
        if len(failed) > job["spec"]["backoffLimit"]:
            return [partial(self._end_job, job, "Failed")]
        return [partial(self._start_pod, job, len(failed))]

    def _end_job(self, job: Manifest, how: str) -> None:
        self.api.set_status("Job", _name(job), {"conditions": [{"type": how, "status": "True", "reason": how}]})

    def _start_pod(self, job: Manifest, number: int) -> None:
        template = job["spec"]["template"]
        name = f"{_name(job)}-{job['metadata']['uid']}-{number}"
        labels = {**template["metadata"]["labels"], "batch.kubernetes.io/job-name": _name(job)}
        pod = {"kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": template["spec"], "job": _name(job)}
        self.api.put(pod, {"phase": "Pending"})
        self._done[name] = 0

    def _is_active(self, pod: Manifest) -> bool:
        """Whether it has containers that have not ended; the one that hands out a snapshot runs until it is deleted."""
        ended = pod["status"]["phase"] in ("Succeeded", "Failed")
        claims = [each["persistentVolumeClaim"]["claimName"] for each in pod["spec"]["volumes"] if _is_claim(each)]
        if not all(("PersistentVolumeClaim", name) in self.api.objects for name in claims):
            return False  # it waits for its PVC
        return not ended and not pod["status"].get("containerStatuses")

    def _step(self, pod: Manifest) -> None:
        """Run its next container, to the end or to a failure."""
        name, containers = _name(pod), _containers(pod)
        step = self._done[name]
        container = containers[step]
        if container["name"] == "serve":
            self._tell(pod, "Running", {"serve": {"running": {}}})
            return
        if self.faulty and self.random.random() < 0.12:
            self.api.say(f"failed: {container['name']} of {name}")
            if container["name"] == "restore":
                self._volume(pod).folders["data"] = PARTIAL
            failed = {"terminated": {"exitCode": 1, "message": json.dumps({"error": "no space left"})}}
            self._tell(pod, "Failed", {container["name"]: failed})
            return
        report = self._run(pod, container)
        if report is None:
            failed = {"terminated": {"exitCode": 1, "message": json.dumps({"error": "no member is healthy"})}}
            self._tell(pod, "Failed", {container["name"]: failed})
            return
        self._done[name] = step + 1
        ended = {container["name"]: {"terminated": {"exitCode": 0, "message": json.dumps(report)}}}
        last = step + 1 == len(containers)
        self._tell(pod, "Succeeded" if last else "Running", ended)
        if last and ("Job", pod["job"]) in self.api.objects:
            self._end_job(self.api.objects["Job", pod["job"]], "Complete")

    def _tell(self, pod: Manifest, phase: str, states: dict[str, Manifest]) -> None:
        status = pod["status"]
        known = [*status.get("initContainerStatuses", []), *status.get("containerStatuses", [])]
        told = {each["name"]: each for each in known}
        told |= {name: {"name": name, "state": state} for name, state in states.items()}
        main = [told.pop(name) for name in [_containers(pod)[-1]["name"]] if name in told]
        others = list(told.values())
        status = {"phase": phase, "podIP": "10.0.0.9", "containerStatuses": main, "initContainerStatuses": others}
        self.api.set_status("Pod", _name(pod), status)

    def _drop_pod(self, pod: Manifest) -> None:
        """Its Job was deleted. It may have done one more step before it is killed."""
        if self._is_active(pod) and self.random.random() < 0.5:
            self._step(pod)
        del self.api.objects["Pod", _name(pod)]

    def _run(self, pod: Manifest, container: Manifest) -> dict[str, Any] | None:
        """The effect of a container, and its report; None when it fails."""
        env = {each["name"]: each.get("value", "") for each in container["env"]}
        match container["name"]:
            case "save":
                return self._save(pod, env["SNAPSHOT_DEST"])
            case "check":
                self.api.logs[_name(pod)] = _CHECKED
            case "delete":
                self.snapshots.pop(env["SNAPSHOT_DEST"], None)
            case "prepare":
                self._prepare(pod, env)
            case "restore":
                token = next(word for word in container["command"] if word.startswith("--initial-cluster-token="))
                self._volume(pod).folders["data"] = f"restored-{token.partition('=')[2]}"
            case "putback" | "tidy":
                self._after(pod, container["name"], env)
        return {}

    def _save(self, pod: Manifest, where: str) -> dict[str, Any] | None:
        backup = self.api.objects.get(("EtcdBackup", pod["metadata"]["labels"]["etcdops.dev/backup"]))
        cluster = self.api.objects.get(("EtcdCluster", backup["spec"]["cluster"])) if backup else None
        known = (cluster or {}).get("status", {}).get("clusterID")
        if not cluster or not known or not any(each["healthy"] for each in cluster["status"].get("members", [])):
            return None
        self.snapshots[where] = known
        return {"sha256": "ab", "size": 1, "version": "3.6.16", "cluster_id": known, "member": "x", "seconds": 1}

    # -- volumes

    def _volume(self, pod: Manifest) -> Volume:
        claim = next(each["persistentVolumeClaim"]["claimName"] for each in pod["spec"]["volumes"] if _is_claim(each))
        return self.volumes[self.api.objects["PersistentVolumeClaim", claim]["metadata"]["uid"]]

    def _prepare(self, pod: Manifest, env: dict[str, str]) -> None:
        """As etcd_restore does: move existing data away, once."""
        folders, old = self._volume(pod).folders, env.get("RESTORE_OLD_DATA", "").rpartition("/")[2]
        self._check_stopped(pod)
        if old and old not in folders:
            folders[old] = folders.pop("data", "")
        elif "data" in folders:
            self._destroy(folders, "data")

    def _after(self, pod: Manifest, verb: str, env: dict[str, str]) -> None:
        folders, old = self._volume(pod).folders, env["RESTORE_OLD_DATA"].rpartition("/")[2]
        if old not in folders:
            return
        if verb == "tidy":
            allowed = self._allows_deletion(pod["metadata"]["labels"]["etcdops.dev/restore"])
            self._destroy(folders, old, allowed=allowed)
            return
        self._check_stopped(pod)
        if "data" in folders:
            self._destroy(folders, "data")
        if previous := folders.pop(old):
            folders["data"] = previous

    def _allows_deletion(self, restore: str) -> bool:
        found = self.api.objects.get(("EtcdRestore", restore), {"metadata": {}})
        return DELETE_PREVIOUS_DATA in found["metadata"].get("annotations", {})

    def _check_stopped(self, pod: Manifest) -> None:
        cluster = next(iter(_name(each) for each in self._clusters() if self._uses(each, pod)), "")
        if cluster and self.api.list("Pod", "", f"etcdops.dev/cluster={cluster}"):
            raise ViolationError(f"no volume is changed while members run: {_name(pod)}")

    def _clusters(self) -> list[Manifest]:
        return [each for (kind, _), each in self.api.objects.items() if kind == "EtcdCluster"]

    def _uses(self, cluster: Manifest, pod: Manifest) -> bool:
        return any(_is_claim(each) and f"data-{_name(cluster)}-" in str(each) for each in pod["spec"]["volumes"])

    def _destroy(self, folders: dict[str, str], folder: str, *, allowed: bool = False) -> None:
        data = folders.pop(folder)
        if data in self.used and not allowed and data not in self.snapshots.values():
            raise ViolationError(f"data is deleted only if a verified copy exists elsewhere: {data} in {folder}")

    def _claim_moves(self) -> list[Move]:
        """PVCs get a volume, and those that are deleted go when no pod uses them."""
        found: list[Move] = []
        for (kind, name), claim in self.api.objects.items():
            if kind != "PersistentVolumeClaim":
                continue
            self.volumes.setdefault(claim["metadata"]["uid"], Volume())
            pods = [pod for (one, _), pod in self.api.objects.items() if one == "Pod" and "job" in pod]
            if "deletionTimestamp" in claim["metadata"] and not any(name in str(pod["spec"]) for pod in pods):
                found.append(partial(self._delete_claim, name))
        return found

    def _delete_claim(self, name: str) -> None:
        claim = self.api.objects.pop(("PersistentVolumeClaim", name))
        folders = self.volumes.pop(claim["metadata"]["uid"]).folders
        for folder in list(folders):
            self._destroy(folders, folder)

    # -- EtcdClusters, as their own reconcile and their members would change them

    def _cluster_moves(self, cluster: Manifest) -> list[Move]:
        name, status = _name(cluster), cluster.get("status", {})
        pods = self.api.list("Pod", "", f"etcdops.dev/cluster={name}")
        replicas = self.api.objects.get(("StatefulSet", name), {"spec": {"replicas": 0}})["spec"]["replicas"]
        if "deletionTimestamp" in cluster["metadata"]:
            return [partial(self._delete_cluster, name)]
        if cluster["metadata"].get("annotations", {}).get(HELD_BY):
            if status.get("phase") != "Restoring":
                return [partial(self._report, cluster, phase="Restoring", members=[])]
            if replicas:
                return [partial(self._scale, name, 0)]
            return [partial(self._drop_member, pod) for pod in pods]
        if not replicas:
            return [partial(self._start, cluster)]
        return [partial(self._run_cluster, cluster)] if status.get("phase") in ("Starting", None) else []

    def _delete_cluster(self, name: str) -> None:
        del self.api.objects["EtcdCluster", name]
        self.api.objects.pop(("StatefulSet", name), None)
        for pod in self.api.list("Pod", "", f"etcdops.dev/cluster={name}"):
            self._drop_member(pod)

    def _scale(self, name: str, replicas: int) -> None:
        self.api.put({"kind": "StatefulSet", "metadata": {"name": name}, "spec": {"replicas": replicas}})

    def _drop_member(self, pod: Manifest) -> None:
        del self.api.objects["Pod", _name(pod)]

    def _report(self, cluster: Manifest, **status: Any) -> None:
        self.api.set_status("EtcdCluster", _name(cluster), {**cluster.get("status", {}), **status})

    def data(self, cluster: Manifest) -> list[str]:
        """What each member would start with; "" for nothing."""
        claims = [
            each
            for (kind, name), each in sorted(self.api.objects.items())
            if kind == "PersistentVolumeClaim"
            and each["metadata"].get("labels", {}).get(UID_LABEL) == cluster["metadata"]["uid"]
        ]
        return [self.volumes[each["metadata"]["uid"]].folders.get("data", "") for each in claims]

    def _start(self, cluster: Manifest) -> None:
        found, size = self.data(cluster), cluster["spec"]["size"]
        one = len(found) == size and len(set(found) - {""}) == 1
        # Members may have lost their data since the cluster ran.
        if not one or PARTIAL in found or ("" in found and not set(found) & self.used):
            raise ViolationError(f"a cluster starts only with the complete data of one cluster: {found}")
        self._scale(_name(cluster), size)
        for number in range(size):
            meta = {"name": f"{_name(cluster)}-{number}", "labels": {"etcdops.dev/cluster": _name(cluster)}}
            self.api.put({"kind": "Pod", "metadata": meta, "spec": {"containers": [{"name": "etcd", "image": "etcd"}]}})
        self._report(cluster, phase="Starting")

    def _run_cluster(self, cluster: Manifest) -> None:
        found = self.data(cluster)
        healthy = "" not in found
        members = [
            {"name": f"{_name(cluster)}-{number}", "role": "follower", "healthy": healthy}
            for number in range(cluster["spec"]["size"])
        ]
        known = next(each for each in found if each)
        self.used.add(known)
        self._report(cluster, phase="Running" if healthy else "QuorumLost", clusterID=known, members=members)

    def lose_quorum(self, name: str) -> None:
        """All volumes but one lose their data."""
        cluster = self.api.objects["EtcdCluster", name]
        if cluster.get("status", {}).get("phase") != "Running":
            return
        self.api.say(f"quorum lost: {name}")
        for number in range(1, cluster["spec"]["size"]):
            claim = self.api.objects["PersistentVolumeClaim", f"data-{name}-{number}"]
            self.volumes[claim["metadata"]["uid"]].folders.pop("data", None)
        self._run_cluster(cluster)


def _name(manifest: Manifest) -> str:
    return str(manifest["metadata"]["name"])


def _containers(pod: Manifest) -> list[Manifest]:
    return [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]


def _is_claim(volume: Manifest) -> bool:
    return "persistentVolumeClaim" in volume

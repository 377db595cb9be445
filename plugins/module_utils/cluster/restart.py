"""Restarting one member: checked against etcd immediately before, leadership moved, then its pod deleted by uid."""

from __future__ import annotations

from dataclasses import dataclass

from ..etcd.leadership import move_leader
from ..etcd.restart_order import transferee, voters
from ..kube.effects import apply_all
from ..kube.errors import ChangedError
from ..kube.manifest import Manifest
from .acting import Live


@dataclass(frozen=True)
class Restart:
    pod: str
    uid: str
    transferee: str = ""  # member ID in hexadecimal, preferred if the member leads
    objects: tuple[Manifest, ...] = ()


def restart_member(live: Live, restart: Restart, *, dry_run: bool = False) -> bool:
    """Delete the pod with this uid, if that is safe now; leadership moves first, and the objects are applied."""
    next_leader = transferee(voters(live.view), restart.pod, int(restart.transferee or "0", 16))
    if dry_run:
        return True
    if next_leader:
        move_leader(live.connection, live.view, next_leader.id)
    if refused := apply_all(live.api, restart.objects).refused:
        raise ChangedError(409, refused)
    return live.api.delete("Pod", live.cluster.namespace, restart.pod, {"uid": restart.uid})

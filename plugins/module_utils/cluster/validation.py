"""Validation by dry run: a schema can't know all that is wrong with a pod or a PVC."""

from __future__ import annotations

from ..kube.client import Kube
from ..kube.errors import KubeError
from ..kube.manifest import unconditional
from ..plan import Plan
from . import planner
from .actions import ExpandVolumes
from .situation import Situation


def validate(api: Kube, s: Situation, plan: Plan) -> Plan:
    """The plan, or what is reported instead when Kubernetes would refuse its objects."""
    action = plan.action
    objects = action.claims if isinstance(action, ExpandVolumes) else getattr(action, "objects", ())
    for manifest in objects:
        try:
            if manifest["kind"] in ("StatefulSet", "PersistentVolumeClaim"):
                api.apply(unconditional(manifest), dry_run=True)
        except KubeError as error:
            if error.status in (400, 403, 422):
                instead = planner.rejected(s, plan, str(error))
                return instead if s.rejected else validate(api, s.unchanged(), instead)
            raise
    return plan

"""What a plan is made from: the spec, the observation, the membership and the version that pods run. Computed once."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..api.cluster import Cluster
from ..etcd.errors import EtcdError
from ..etcd.view import Answer
from ..kube.manifest import Manifest
from . import manifests, quota
from .membership import Membership, membership_of
from .observation import Observation


@dataclass(frozen=True)
class Situation:
    cluster: Cluster
    observed: Observation
    membership: Membership | None  # None when no quorum reports it
    version: str  # that new pods run: spec.version, or the earlier one until an upgrade may start
    target: str = ""  # spec.version while `version` is not that yet
    rejected: bool = False  # Kubernetes refuses the pods of this spec

    @property
    def keeps_template(self) -> bool:
        """Whether a pod that restarts stays what it was: until an upgrade may start, or the spec was corrected."""
        return bool(self.target) or self.rejected

    def answer(self, pod: str) -> Answer | None:
        """What the member in a pod answered, whoever it is; None when it did not."""
        return self.observed.view.answer(self.cluster.client_url(pod))

    def healthy(self, pod: str) -> bool:
        answer = self.answer(pod)
        return answer is not None and answer.healthy

    def error(self, pod: str) -> str:
        """Why a member is not healthy, in its own words or in those of the connection."""
        found = self.observed.view.answers.get(self.cluster.client_url(pod))
        return str(found) if isinstance(found, EtcdError) else found.error if found else ""

    def has_foreign_claim(self, pod: str) -> bool:
        """Whether the PVC that a pod would use was made for something else: no member may join with it."""
        claim = self.observed.claim(pod)
        return claim is not None and claim.cluster_uid != self.cluster.uid

    @property
    def stateful_set(self) -> Manifest | None:
        return self.observed.objects.get(f"StatefulSet/{self.cluster.name}")

    @property
    def replicas(self) -> int:
        """As the StatefulSet has it now; 0 when there is none."""
        return int((self.stateful_set or {}).get("spec", {}).get("replicas", 0))

    @property
    def files(self) -> dict[str, str]:
        """The members' configuration files, by file name."""
        found: dict[str, str] = self.observed.objects.get(f"ConfigMap/{self.cluster.config_map}", {}).get("data", {})
        return found

    @property
    def in_memory(self) -> bool:
        return self.cluster.storage.type == "Memory"

    def unchanged(self) -> Situation:
        """The same situation when new pods must be as the former ones."""
        return replace(self, rejected=True)

    def released(self) -> Situation:
        """The same situation when pods may run the target version."""
        return replace(self, version=self.target, target="")

    def as_rendered(self) -> Situation:
        """With the version that new pods run now, by the StatefulSet or the ConfigMap."""
        version = self._rendered_version() or self.cluster.version
        return replace(self, version=version, target=self.cluster.version if version != self.cluster.version else "")

    def _rendered_version(self) -> str:
        if live := self.stateful_set:
            return manifests.version_of(live["spec"]["template"])
        config_map = self.observed.objects.get(f"ConfigMap/{self.cluster.config_map}", {})
        noted: str = (config_map.get("metadata", {}).get("annotations") or {}).get(manifests.VERSION, "")
        return noted


def situation_of(cluster: Cluster, observed: Observation) -> Situation:
    found = Situation(cluster, observed, membership_of(cluster, observed), cluster.version)
    found = replace(found, cluster=quota.with_default(cluster, found.files, observed.claims))
    # Before the first quorum a corrected version counts at once.
    return found if observed.memory.cluster_id is None else found.as_rendered()

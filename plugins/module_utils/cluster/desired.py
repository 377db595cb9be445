"""The desired objects of a formed cluster, given its membership. Pure; drift is what differs from them.

A change of membership that was interrupted is finished by nothing more than this: a learner in the member list gets its
configuration and its pod, a member that has left loses both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ..etcd.versions import parse
from ..kube import drift, quantity
from ..kube.manifest import Manifest, based_on
from ..plan import Ref
from . import manifests, member_config
from .manifests import Objects
from .membership import Membership, MemberSlot
from .situation import Situation

Manifests = tuple[Manifest, ...]


def member_pods(s: Situation) -> list[str]:
    """The members when no quorum reports them: the ConfigMap has a file for each, and outlives the pods."""
    names = sorted((name.removesuffix(".yaml") for name in s.files), key=lambda name: s.cluster.ordinal(name) or 0)
    return names or [s.cluster.pod_name(each) for each in range(s.replicas)] or _with_data(s)


def _with_data(s: Situation) -> list[str]:
    """The pods of this EtcdCluster whose PVCs exist."""
    own = [claim.name.removeprefix("data-") for claim in s.observed.claims if claim.cluster_uid == s.cluster.uid]
    return sorted(
        (name for name in own if s.cluster.ordinal(name) is not None), key=lambda n: s.cluster.ordinal(n) or 0
    )


def started(s: Situation) -> list[str]:
    """Those of them that have voted already, as far as the ConfigMap tells: their files are sealed."""
    pods = member_pods(s)
    return [pod for pod in pods if not _is_open(s, pod)] or pods


def for_recorded_members(s: Situation, replicas: int) -> Objects:
    """The objects for the members that the ConfigMap records, with so many pods."""
    pods = member_pods(s)
    initial = [f"{pod}={s.cluster.peer_url(pod)}" for pod in pods]
    opened = {pod: initial for pod in pods if _is_open(s, pod) and s.answer(pod) is None}
    return objects(s, replicas, _formed(s, pods, opened), voters=len(pods))


@dataclass(frozen=True)
class Change:
    """A change of membership or of a pod that is about to happen."""

    joining: str = ""  # the pod
    leaving: str = ""  # the member ID
    restarting: str = ""  # the pod


NO_CHANGE = Change()


def for_members(s: Situation, members: Membership, change: Change = NO_CHANGE) -> Objects:
    """The objects for these members, after a change.

    A pod whose member is gone but whose slot is wanted stays: its member will be added again.
    """
    joining, leaving = change.joining, change.leaving
    staying = [slot for slot in members.slots if slot.member and slot.id != leaving]
    names = {slot.name for slot in staying} | ({joining} if joining else set())
    wanted = {s.cluster.pod_name(number) for number in range(min(s.cluster.size, s.replicas))}
    pods = sorted(names | wanted, key=lambda name: s.cluster.ordinal(name) or 0)
    urls = {slot.name: slot.member.peer_urls[0] for slot in staying if slot.member}
    urls |= {f"{member.id:x}": url for member in members.unmanaged for url in member.peer_urls}
    if joining:
        urls[joining] = s.cluster.peer_url(joining)
    initial = [f"{name}={url}" for name, url in sorted(urls.items())]
    unstarted = {slot.name for slot in staying if _is_unstarted(s, slot)}
    opened = dict.fromkeys(unstarted | ({joining} if joining else set()), initial)
    files = _formed(s, pods, opened, recreated={change.restarting, joining})
    number = 1 + max((s.cluster.ordinal(pod) or 0 for pod in pods), default=0)
    voters = members.votes - sum(slot.id == leaving for slot in members.voters)
    return objects(s, number, files, voters=max(voters, s.cluster.size))


def changed(wanted: Iterable[Manifest], s: Situation) -> Manifests:
    """Those that differ from the live ones, to be applied if these are still the same then."""
    return tuple(
        conditional(each, s)
        for each in wanted
        if _differs(each, _live(each, s)) and not s.observed.foreign_name(each["kind"], each["metadata"]["name"])
    )


def conditional(wanted: Manifest, s: Situation) -> Manifest:
    """An object that is applied only if the live one is still the one that was observed."""
    return based_on(wanted, _live(wanted, s))


def _live(wanted: Manifest, s: Situation) -> Manifest | None:
    return s.observed.objects.get(f"{wanted['kind']}/{wanted['metadata']['name']}")


def _differs(want: Manifest, have: Manifest | None) -> bool:
    # A surplus file is a difference too.
    return drift.differs(want, have) or bool(have and set(want.get("data", {})) != set(have.get("data", {})))


def _is_unstarted(s: Situation, slot: MemberSlot) -> bool:
    """Whether this member has yet to start for the first time: only then is its file open.

    A member publishes its client URLs soon after it has started, but it may have voted before that: the file of a voter
    that was sealed once is never opened again.
    """
    if slot.member is None or slot.member.client_urls or slot.answers:
        return False
    return slot.member.is_learner or _is_open(s, slot.name)


def leftover_claims(s: Situation, members: Membership, *, leaving: str = "") -> tuple[Ref, ...]:
    """PVCs of this EtcdCluster in slots where no member is and none is wanted. No other PVC is ever deleted."""
    needed = {slot.ordinal for slot in members.slots if slot.member and slot.id != leaving}
    return tuple(
        Ref(claim.name, claim.uid)
        for claim in s.observed.claims
        if (number := s.cluster.ordinal(claim.name.removeprefix("data-"))) is not None
        and number >= max(s.cluster.size, 1)
        and number not in needed
        and claim.cluster_uid == s.cluster.uid
        and not claim.deleting
    )


def objects(s: Situation, replicas: int, files: dict[str, str], *, voters: int) -> Objects:
    """The objects, with the fields that can't be changed in place as they are."""
    wanted = manifests.objects(s.cluster, s.version, replicas, files, voters)
    live, spec = s.stateful_set, wanted.stateful_set["spec"]
    if live and "volumeClaimTemplates" in spec:
        spec["volumeClaimTemplates"] = live["spec"].get("volumeClaimTemplates", [])
    if live and s.keeps_template:
        spec["template"] = live["spec"]["template"]
    return wanted


def is_outgrown(s: Situation) -> bool:
    """Whether the StatefulSet makes PVCs that are smaller than spec.storage.size."""
    if s.stateful_set is None or s.in_memory:
        return False
    have = s.stateful_set["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"]
    return quantity.parse(have) < quantity.parse(s.cluster.storage.size)


def _formed(
    s: Situation, pods: list[str], opened: Mapping[str, list[str]], recreated: Iterable[str] = ()
) -> dict[str, str]:
    """Each member's file is for the version that its pod runs: a container that restarts reads it again.

    Or for the one that it will run, if that is older: each version knows the names that options had in the one before,
    and ignores others.
    """
    kept = {}
    template = manifests.version_of(s.stateful_set["spec"]["template"]) if s.stateful_set else ""
    for name in pods:
        pod = s.observed.pod(name)
        if s.keeps_template:
            found = s.files.get(member_config.file_name(name)) or next(iter(s.files.values()), "")
            kept[name] = member_config.settings_in(found)
            continue
        runs = template if pod is None or pod.deleting or name in recreated else pod.version
        if runs not in ("", s.version):
            kept[name] = member_config.settings_text(s.cluster, min(runs, s.version, key=parse))
    return member_config.formed(s.cluster, s.version, pods, opened, kept)


def _is_open(s: Situation, pod: str) -> bool:
    """Whether a member may start without data. A file that is missing is made again as a sealed one."""
    text = s.files.get(member_config.file_name(pod))
    return text is not None and not member_config.is_sealed(s.cluster, pod, text)


def stopped(wanted: Objects) -> Objects:
    """The same objects with no pods."""
    stateful_set = {**wanted.stateful_set, "spec": {**wanted.stateful_set["spec"], "replicas": 0}}
    return replace(wanted, stateful_set=stateful_set)

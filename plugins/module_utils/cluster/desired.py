"""What the objects of a formed cluster should be, given who its members are. Pure; drift is what differs from it.

A change of membership that was cut short is finished by nothing more than this: a learner that is in the list gets its
file and its pod, a member that has left loses both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ..api.cluster import Cluster
from ..etcd.versions import of_image, parse
from ..kube import quantity
from ..kube.manifest import Manifest
from . import config, manifests
from .observation import Observed
from .slots import Seat, Team

Manifests = tuple[Manifest, ...]


def member_pods(cluster: Cluster, seen: Observed) -> list[str]:
    """Who the members are when no quorum tells: the ConfigMap has a file for each, and outlives the pods."""
    files = _files(cluster, seen)
    names = sorted((name.removesuffix(".yaml") for name in files), key=lambda name: cluster.ordinal(name) or 0)
    number = replicas(cluster, seen) or len(seen.claims)
    return names or [cluster.pod_name(each) for each in range(number)]


def started(cluster: Cluster, seen: Observed) -> list[str]:
    """Those of them that have voted already, as far as the ConfigMap tells: their files are sealed."""
    pods = member_pods(cluster, seen)
    return [pod for pod in pods if not _is_open(cluster, seen, pod)] or pods


def replicas(cluster: Cluster, seen: Observed) -> int:
    """As the StatefulSet has it now; 0 when there is none."""
    found: int = seen.objects.get(f"StatefulSet/{cluster.name}", {}).get("spec", {}).get("replicas", 0)
    return found


def as_they_are(cluster: Cluster, seen: Observed, number: int) -> list[Manifest]:
    """The objects for the members that the ConfigMap tells of, with so many pods."""
    pods = member_pods(cluster, seen)
    initial = [f"{pod}={cluster.peer_url(pod)}" for pod in pods]
    opened = {pod: initial for pod in pods if _is_open(cluster, seen, pod) and not _answers(seen, pod)}
    return objects(cluster, seen, number, _formed(cluster, seen, pods, opened), voters=len(pods))


@dataclass(frozen=True)
class Change:
    """What is about to happen to the members."""

    coming: str = ""  # the pod that joins
    going: str = ""  # the ID of the member that leaves
    renewed: str = ""  # the pod that is made anew


NO_CHANGE = Change()


def for_team(cluster: Cluster, seen: Observed, team: Team, change: Change = NO_CHANGE) -> list[Manifest]:
    """The objects for these members, after a change.

    A pod whose member is gone, but whose place is wanted, stays: its member will be added anew.
    """
    coming, going = change.coming, change.going
    members = [seat for seat in team.seats if seat.member and seat.id != going]
    names = {seat.name for seat in members} | ({coming} if coming else set())
    wanted = {cluster.pod_name(number) for number in range(min(cluster.size, replicas(cluster, seen)))}
    pods = sorted(names | wanted, key=lambda name: cluster.ordinal(name) or 0)
    urls = {seat.name: seat.member.peer_urls[0] for seat in members if seat.member}
    urls |= {f"{member.id:x}": url for member in team.strangers for url in member.peer_urls}
    if coming:
        urls[coming] = cluster.peer_url(coming)
    initial = [f"{name}={url}" for name, url in sorted(urls.items())]
    unstarted = {seat.name for seat in members if _is_unstarted(cluster, seen, seat)}
    opened = dict.fromkeys(unstarted | ({coming} if coming else set()), initial)
    files = _formed(cluster, seen, pods, opened, anew={change.renewed, coming})
    number = 1 + max((cluster.ordinal(pod) or 0 for pod in pods), default=0)
    voters = team.votes - sum(seat.id == going for seat in team.voters)
    return objects(cluster, seen, number, files, voters=max(voters, cluster.size))


def changed(wanted: Iterable[Manifest], seen: Observed) -> Manifests:
    """Those that are not yet so."""
    return tuple(
        manifest
        for manifest in wanted
        if _differs(manifest, seen.objects.get(f"{manifest['kind']}/{manifest['metadata']['name']}"))
    )


def _differs(want: Manifest, have: Manifest | None) -> bool:
    # A file too many is a difference as well.
    return manifests.differs(want, have) or bool(have and set(want.get("data", {})) != set(have.get("data", {})))


def _is_unstarted(cluster: Cluster, seen: Observed, seat: Seat) -> bool:
    """Has this member yet to start for the first time? Only then is its file open.

    A member tells its client URLs soon after it has started, but it may have voted before that: of a voter, a file that
    was sealed once is never opened again.
    """
    if seat.member is None or seat.member.client_urls or seat.answers:
        return False
    return seat.member.is_learner or _is_open(cluster, seen, seat.name)


def leftover_claims(cluster: Cluster, seen: Observed, team: Team, *, going: str = "") -> tuple[str, ...]:
    """Claims of ours where no member is and none is wanted. Only what this EtcdCluster made is ever deleted."""
    needed = {seat.ordinal for seat in team.seats if seat.member and seat.id != going}
    return tuple(
        claim.name
        for claim in seen.claims
        if (number := cluster.ordinal(claim.name.removeprefix("data-"))) is not None
        and number >= max(cluster.size, 1)
        and number not in needed
        and claim.cluster_uid == cluster.uid
        and not claim.deleting
    )


def objects(cluster: Cluster, seen: Observed, number: int, files: dict[str, str], *, voters: int) -> list[Manifest]:
    """The objects, with what can't be changed as it is."""
    wanted = manifests.objects(cluster, number, files, voters)
    live = seen.objects.get(f"StatefulSet/{cluster.name}")
    if live and "volumeClaimTemplates" in wanted[-1]["spec"]:  # can't be changed in place
        wanted[-1]["spec"]["volumeClaimTemplates"] = live["spec"].get("volumeClaimTemplates", [])
    if live and cluster.target:  # a pod that restarts now is to be what it was
        wanted[-1]["spec"]["template"] = live["spec"]["template"]
    return wanted


def is_outgrown(cluster: Cluster, seen: Observed) -> bool:
    """Does the StatefulSet make claims that are smaller than is wanted?"""
    live = seen.objects.get(f"StatefulSet/{cluster.name}")
    if live is None or cluster.storage.type != "Persistent":
        return False
    have = live["spec"]["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"]
    return quantity.parse(have) < quantity.parse(cluster.storage.size)


def _formed(
    cluster: Cluster, seen: Observed, pods: list[str], opened: Mapping[str, list[str]], anew: Iterable[str] = ()
) -> dict[str, str]:
    """Each member's file is for the version that its pod runs: a container that starts again reads it again.

    Or for the one that it will run, if that is older: each version knows the names that options had in the one before,
    and says nothing of others.
    """
    files, kept, live = _files(cluster, seen), {}, seen.objects.get(f"StatefulSet/{cluster.name}")
    template = of_image(live["spec"]["template"]["spec"]["containers"][0]["image"]) if live else ""
    for name in pods:
        pod = seen.pod(name)
        if cluster.target:
            found = files.get(config.file_name(name)) or next(iter(files.values()), "")
            kept[name] = config.settings_in(found)
            continue
        runs = template if pod is None or pod.deleting or name in anew else pod.version
        if runs not in ("", cluster.version):
            older = min(runs, cluster.version, key=parse)
            kept[name] = config.settings_text(replace(cluster, version=older))
    return config.formed(cluster, pods, opened, kept)


def _files(cluster: Cluster, seen: Observed) -> dict[str, str]:
    files: dict[str, str] = seen.objects.get(f"ConfigMap/{cluster.config_map}", {}).get("data", {})
    return files


def _is_open(cluster: Cluster, seen: Observed, pod: str) -> bool:
    """A file that is gone is made anew as a sealed one."""
    text = _files(cluster, seen).get(config.file_name(pod))
    return text is not None and not config.is_sealed(cluster, pod, text)


def _answers(seen: Observed, pod: str) -> bool:
    answer = seen.answers.get(pod)
    return answer is not None and answer.status is not None

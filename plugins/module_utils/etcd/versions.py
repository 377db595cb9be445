"""The upgrade paths that etcd's maintainers support, and the names of options in each version.

Pure, and data where it can be.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Version:
    major: int
    minor: int
    patch: int = 0

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"

    @property
    def series(self) -> str:
        return f"{self.major}.{self.minor}"


# The version that every member must run at least before an upgrade to this minor version, and why.
_BEFORE = {
    6: (
        Version(3, 5, 26),
        "earlier ones keep removed members in the store that 3.6 uses, so that they come back; before 3.5.20 promoted "
        "members become learners again",
    ),
    7: (Version(3, 6, 11), "earlier ones may not work with 3.7 in one cluster"),
}

# A minor version that can't read the log entries of another one, and why.
_LOG = {7: (5, "3.7 has no v2 store and exits when it replays what 3.5 wrote for it")}

_NEWS = {
    6: "feature gates, and downgrades through etcd's own API",
    7: "the feature gates FastLeaseKeepAlive and PriorityRequest; the v2 store and the experimental- options are gone",
}

# Options that are named experimental-… up to 3.5. 3.6 accepts both names, 3.7 only the short one.
RENAMED = frozenset(
    {
        "bootstrap-defrag-threshold-megabytes",
        "compact-hash-check-time",
        "compaction-batch-limit",
        "compaction-sleep-interval",
        "corrupt-check-time",
        "distributed-tracing-address",
        "distributed-tracing-sampling-rate",
        "distributed-tracing-service-name",
        "downgrade-check-time",
        "enable-distributed-tracing",
        "warning-apply-duration",
        "watch-progress-notify-interval",
    }
)
# Flags of 3.5 that are feature gates from 3.6 on.
GATES = {
    "experimental-compact-hash-check-enabled": "CompactHashCheck",
    "experimental-enable-lease-checkpoint": "LeaseCheckpoint",
    "experimental-enable-lease-checkpoint-persist": "LeaseCheckpointPersist",
    "experimental-initial-corrupt-check": "InitialCorruptCheck",
    "experimental-stop-grpc-service-on-defrag": "StopGRPCServiceOnDefrag",
    "experimental-txn-mode-write-with-shared-buffer": "TxnModeWriteWithSharedBuffer",
}
_PREFIX = "experimental-"
_SINCE_3_6 = {"feature-gates", "log-format", "snapshot-catchup-entries", "warning-unary-request-duration"}


def parse(text: str) -> Version:
    """From 3.6.16, 3.6, or 3.7.0-rc.1."""
    found = re.match(r"^v?(\d+)\.(\d+)(?:\.(\d+))?", text)
    if not found:
        raise ValueError(f"{text!r} is not an etcd version")
    return Version(int(found[1]), int(found[2]), int(found[3] or 0))


def of_image(image: str) -> str:
    """The version in an image's tag; "" when it has none."""
    found = re.search(r":v(\d+\.\d+\.\d+)$", image)
    return found[1] if found else ""


def news(version: str) -> str:
    """What is new in a minor version, in a line."""
    return _NEWS.get(parse(version).minor, "")


def drops_log_of(running: Collection[str], target: str) -> str:
    """The minor version whose entries the members must drop from their logs before they move; "" for none."""
    goal = parse(target)
    found = _LOG.get(goal.minor)
    if found is None or all(parse(version).minor >= goal.minor for version in running):
        return ""
    return f"{goal.major}.{found[0]}"


def refusal(
    running: Collection[str],
    target: str,
    *,
    cluster_version: str = "",
    silent: bool = False,
    allow_downgrade: bool = False,
) -> str:
    """Why members that run these versions can't be brought to the target, and what to do; "" when they can.

    Back is possible as long as one member has not moved: etcd's own version of the cluster is the old one until then,
    and nothing was written that an older etcd can't read. `silent` says that there is one of which nothing is known.
    """
    goal, versions = parse(target), sorted(map(parse, running))
    if not versions:
        return ""
    if why := _too_far(goal, versions):
        return why
    if goal >= versions[-1] or allow_downgrade or _may_return(goal, versions, cluster_version, silent=silent):
        return ""
    return (
        f"Every member runs {versions[0]} or later, and etcd goes back from there only if spec.upgrade.allowDowngrade "
        f"is true. Set that, or set spec.version to {versions[-1]} or later."
    )


def _may_return(goal: Version, versions: list[Version], cluster_version: str, *, silent: bool) -> bool:
    """Whether a member has not moved yet, so that the rest can go back."""
    oldest, newest = versions[0], versions[-1]
    reached = parse(cluster_version).minor if cluster_version else oldest.minor
    left = oldest.minor <= goal.minor if goal.minor < newest.minor else oldest.patch <= goal.patch
    return reached <= goal.minor and (left or silent)


def _too_far(goal: Version, versions: list[Version]) -> str:
    oldest, newest = versions[0], versions[-1]
    if goal.minor < newest.minor - 1:
        return f"etcd goes back by one minor version at a time: from {newest} to 3.{newest.minor - 1} first."
    if goal.minor > oldest.minor + 1:
        step = f"{oldest.major}.{oldest.minor + 1}"
        return f"etcd is upgraded one minor version at a time: go from {oldest} to {step} first, then to {goal}."
    required, reason = _BEFORE.get(goal.minor, (oldest, ""))
    if any(version.minor < goal.minor and version < required for version in versions):
        return f"{goal.series} can be reached from {required} or later only ({reason}): go from {oldest} there first."
    return ""


def downgrade_to(running: Collection[str], target: str, cluster_version: str) -> str:
    """The minor version that a downgrade must be enabled for before members go back to it; "" when it is not needed."""
    goal = parse(target)
    reached = parse(cluster_version).minor if cluster_version else min((parse(v).minor for v in running), default=0)
    return goal.series if reached > goal.minor else ""


def renamed(options: Mapping[str, str], version: str) -> dict[str, str]:
    """Options by their names in this version. Options that it does not know are left out."""
    if parse(version).minor >= 6:
        return _by_short_names(options)
    named = {name: value for name, value in options.items() if name not in RENAMED | _SINCE_3_6}
    named |= {f"{_PREFIX}{name}": value for name, value in options.items() if name in RENAMED}
    switches = {gate: name for name, gate in GATES.items()}
    for gate, value in _gates(options.get("feature-gates", "")).items():
        if gate in switches:
            named[switches[gate]] = value
    return named


def _by_short_names(options: Mapping[str, str]) -> dict[str, str]:
    short = {name: value for name, value in options.items() if not name.startswith(_PREFIX)}
    for name, value in options.items():
        if name.removeprefix(_PREFIX) in RENAMED:
            short.setdefault(name.removeprefix(_PREFIX), value)
    gates = {GATES[name]: value for name, value in options.items() if name in GATES}
    gates |= _gates(options.get("feature-gates", ""))
    return short | ({"feature-gates": ",".join(f"{gate}={on}" for gate, on in gates.items())} if gates else {})


def _gates(text: str) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in text.split(",") if pair)
    return {gate: value or "true" for gate, _, value in pairs}

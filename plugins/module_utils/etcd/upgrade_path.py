"""The upgrade paths that etcd's maintainers support: which version can become which, and what each one needs."""

from __future__ import annotations

from collections.abc import Collection

from .versions import Version, parse

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

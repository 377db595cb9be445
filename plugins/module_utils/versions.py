"""From which version of etcd one may go to which, and why not, as etcd's maintainers say. No I/O."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Version:
    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


# What every member must run at least before it goes to this minor version, and why.
_BEFORE = {
    6: (
        Version(3, 5, 26),
        "earlier ones leave removed members in the store that 3.6 trusts, so that these come back; before 3.5.20 even "
        "members that were promoted would be learners again",
    )
}


def parse(text: str) -> Version:
    major, minor, patch = (int(part) for part in text.split("."))
    return Version(major, minor, patch)


def refusal(running: Collection[str], target: str) -> str:
    """Why members that run these versions can't be brought to the target, and what to do; "" when they can.

    Going back is possible as long as one member has not moved: until then the cluster's own version is the old one, and
    nothing has been written that an older etcd could not read.
    """
    goal, versions = parse(target), sorted(map(parse, running))
    if not versions:
        return ""
    oldest, newest = versions[0], versions[-1]
    if goal.minor > oldest.minor + 1:
        step = f"{oldest.major}.{oldest.minor + 1}"
        return f"etcd is upgraded one minor version at a time: go from {oldest} to {step} first, then to {goal}."
    if goal.minor < oldest.minor or (goal.minor < newest.minor and goal < oldest):
        return f"etcd can't go back from {oldest} to {goal}: set spec.version to {newest} or a later patch of it."
    required, reason = _BEFORE.get(goal.minor, (oldest, ""))
    if goal.minor > oldest.minor and oldest < required:
        return f"etcd 3.{goal.minor} can be reached from {required} or later only ({reason}): go there first."
    return ""

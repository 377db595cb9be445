"""Check that the operator has the permissions it needs and no others, from the API server's audit log.

Run after the scenarios: python -m tools.permissions. A refused request is an error, and so is a permission that was
never used.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from sandbox import cluster as sandbox
from sandbox import layout

Permission = tuple[str, str, str]  # group, resource, verb
USER = "system:serviceaccount:etcdops-system:etcdops"
# Granted, though no request shows it.
EXPLAINED = {
    # Clusters that enforce it (OpenShift does) check this when an ownerReference blocks deletion.
    ("etcdops.dev", "etcdclusters/finalizers", "update"),
    ("etcdops.dev", "etcdbackups/finalizers", "update"),
    ("etcdops.dev", "etcdrestores/finalizers", "update"),
    # deploy/policy asks the API server whether the operator has it.
    ("etcdops.dev", "etcdclusters", "operate"),
}
# Correctly refused: ansible-operator tries to write a status to an object that was deleted just before its run began.
# The operator's own modules are the only writers of status.
RIGHTLY_REFUSED = {
    ("etcdops.dev", f"{kind}/status", "update")
    for kind in ("etcdclusters", "etcdbackups", "etcdbackupschedules", "etcdrestores")
}


def used(audit: Iterable[dict[str, Any]]) -> set[Permission]:
    """The permissions that the operator used."""
    found = set()
    for request in audit:
        group, resource, verb = _permission(request)
        found.add((group, resource, verb))
        if verb == "patch" and request.get("responseStatus", {}).get("code") == 201:
            found.add((group, resource, "create"))  # apply created an object
    return found


def _permission(request: dict[str, Any]) -> Permission:
    target = request.get("objectRef", {})
    resource = "/".join(filter(None, (target.get("resource", ""), target.get("subresource", ""))))
    return target.get("apiGroup", ""), resource, request["verb"]


def granted(roles: Iterable[dict[str, Any]]) -> set[Permission]:
    return {
        (group, resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def refused(audit: Iterable[dict[str, Any]]) -> list[str]:
    """Requests that were forbidden. A namespace that is being deleted refuses too, but by admission."""
    decision = "authorization.k8s.io/decision"
    forbidden = (r for r in audit if r.get("annotations", {}).get(decision) == "forbid")
    return sorted({f"{r['verb']} {r['requestURI']}" for r in forbidden if _permission(r) not in RIGHTLY_REFUSED})


def audits() -> Iterator[dict[str, Any]]:
    """The requests of the operator, on every sandbox."""
    for number in layout.NUMBERS:
        log = layout.state(number) / "logs" / layout.CONTROL_PLANE / "audit.log"
        lines = log.read_text().splitlines() if log.exists() else []
        yield from (request for request in map(json.loads, lines) if request["user"]["username"] == USER)


def main() -> int:
    audit = list(audits())
    if not audit:
        print("The audit log has no request of the operator; run the scenarios first.", file=sys.stderr)
        return 1
    roles = [
        json.loads(sandbox.kubectl("get", "clusterrole", "etcdops", "--output=json")),
        json.loads(sandbox.kubectl("get", "role", "etcdops-leader-election", "-n", "etcdops-system", "--output=json")),
    ]
    unused = granted(roles) - used(audit) - EXPLAINED
    for permission in sorted(unused):
        print(f"granted and never used: {' '.join(permission)}", file=sys.stderr)
    for uri in refused(audit):
        print(f"denied: {uri}", file=sys.stderr)
    print(f"{len(audit)} requests, {len(used(audit))} permissions used, {len(granted(roles))} granted")
    return 1 if unused or refused(audit) else 0


if __name__ == "__main__":
    sys.exit(main())

"""Which images an EtcdCluster may name: a setting of the operator, so that an editor can't choose any."""

from __future__ import annotations

import os

from .cluster import Cluster

SETTING = "ETCDOPS_ALLOWED_REPOSITORIES"  # prefixes, separated by commas; empty: any


def allowed() -> tuple[str, ...]:
    """The repositories that the administrator of the operator allows; none for any."""
    return tuple(prefix for each in os.environ.get(SETTING, "").split(",") if (prefix := each.strip().rstrip("/")))


def refusal(cluster: Cluster, prefixes: tuple[str, ...]) -> str:
    """Why the image of an EtcdCluster may not be used; "" when it may. A prefix ends where a name ends."""
    repository = cluster.image().partition("@")[0]
    folder, slash, name = repository.rpartition("/")
    repository = f"{folder}{slash}{name.partition(':')[0]}"
    if not prefixes or any(f"{repository}/".startswith(f"{prefix}/") for prefix in prefixes):
        return ""
    field = "spec.image" if cluster.spec_image else "spec.repository"
    return (
        f"{field}: the operator does not allow images of {repository}. Use one of {', '.join(prefixes)}, or have its "
        f"administrator add {repository} to {SETTING}"
    )

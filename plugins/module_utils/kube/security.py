"""The security contexts of every pod that the operator makes: members and Jobs alike."""

from __future__ import annotations

from .manifest import Manifest

USER = 65532  # "nonroot" of the distroless images
TLS_KEYS = ("ca.crt", "tls.crt", "tls.key")  # all that is mounted of a Secret with a certificate


def pod_context() -> Manifest:
    return {
        "runAsNonRoot": True,
        "runAsUser": USER,
        "runAsGroup": USER,
        "fsGroup": USER,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def container_context() -> Manifest:
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }

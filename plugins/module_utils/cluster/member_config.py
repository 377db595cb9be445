"""The configuration file of each member: all that decides how it starts.

etcd ignores other flags and ETCD_* variables when it has a configuration file. `initial-cluster` decides what a member
without data may do, so a file stays open only while it must:

- forming: `new` with the full list, until the first quorum was seen;
- joining: `existing` with the full list, only while this one member starts for the first time;
- sealed: `existing`, with only itself in the list, afterwards. A member with its data starts normally; one without
  refuses to start, so it can never vote under its old identity with an empty log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..api.cluster import Cluster
from ..etcd.options import renamed
from ..kube.quantity import parse

_TLS_DIR = "/etc/etcd/tls"
DATA_DIR = "/var/lib/etcd/data"
_TYPED = {
    "autoCompactionMode": "auto-compaction-mode",
    "autoCompactionRetention": "auto-compaction-retention",
    "heartbeatInterval": "heartbeat-interval",
    "electionTimeout": "election-timeout",
    "snapshotCount": "snapshot-count",
    "logLevel": "log-level",
}
# The keys that differ between members.
_OWN = ("name", "advertise-client-urls", "initial-advertise-peer-urls", "initial-cluster-state", "initial-cluster")
_LISTS = {"log-outputs", "cipher-suites"}
_DURATION = re.compile(r"^(\d+)(ms|s|m|h)$")
_NANOSECONDS = {"ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}


def file_name(pod: str) -> str:
    return f"{pod}.yaml"


def forming(cluster: Cluster, version: str, pods: list[str]) -> dict[str, str]:
    """The files with which a new cluster of these pods starts for the first time."""
    initial = [_initial(cluster, pod) for pod in pods]
    return {file_name(pod): _file(cluster, version, pod, ("new", initial)) for pod in pods}


def formed(
    cluster: Cluster,
    version: str,
    pods: list[str],
    opened: Mapping[str, list[str]],
    kept: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The files after the first quorum: sealed, except for members that have yet to start for the first time.

    For these, `opened` has the whole initial-cluster, which must equal the member list. `kept` has the settings of
    members that keep the ones they have.
    """
    return {
        file_name(pod): _file(
            cluster, version, pod, ("existing", opened.get(pod, [_initial(cluster, pod)])), (kept or {}).get(pod, "")
        )
        for pod in pods
    }


def settings_in(text: str) -> str:
    """The settings in a file that are the same for every member."""
    own = tuple(f"{name}: " for name in _OWN)
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(own))


def settings_text(cluster: Cluster, version: str) -> str:
    return _dump(settings(cluster, version))


def is_sealed(cluster: Cluster, pod: str, text: str) -> bool:
    """Whether only a member that has its data can start with this file."""
    lines = text.splitlines()
    alone = json.dumps(_initial(cluster, pod))
    return 'initial-cluster-state: "existing"' in lines and f"initial-cluster: {alone}" in lines


def settings(cluster: Cluster, version: str) -> dict[str, Any]:
    """The settings that every member of this version has."""
    any_address = f"{cluster.scheme}://0.0.0.0"
    values: dict[str, Any] = {
        "data-dir": DATA_DIR,
        "listen-client-urls": f"{any_address}:2379",
        "listen-peer-urls": f"{any_address}:2380",
        "listen-metrics-urls": "http://0.0.0.0:2381",
        "enable-grpc-gateway": True,  # off by default when there is a configuration file
        "initial-cluster-token": cluster.uid,
        "logger": "zap",
    }
    if cluster.tls.enabled:
        peer = _transport("peer")
        if cluster.tls.mode == "Managed" and not version.startswith("3.5."):  # 3.5 reads it from a flag only
            # Otherwise members check the caller's address by DNS and reject a new pod that DNS does not know yet. Only
            # members have a certificate of the peer CA.
            peer["skip-client-san-verification"] = True
        values |= {"client-transport-security": _transport("server"), "peer-transport-security": peer}
    options = cluster.options
    if quota := options.get("quotaBackendBytes"):
        values["quota-backend-bytes"] = int(parse(str(quota)))
    values |= {name: options[field] for field, name in _TYPED.items() if field in options}
    extra = renamed(options.get("extra", {}), version)
    return values | {name: _value(name, text) for name, text in extra.items()}


def _transport(role: str) -> dict[str, Any]:
    return {
        "cert-file": f"{_TLS_DIR}/{role}/tls.crt",
        "key-file": f"{_TLS_DIR}/{role}/tls.key",
        "trusted-ca-file": f"{_TLS_DIR}/{role}/ca.crt",
        "client-cert-auth": True,
    }


def _initial(cluster: Cluster, pod: str) -> str:
    return f"{pod}={cluster.peer_url(pod)}"


def _file(cluster: Cluster, version: str, pod: str, initial: tuple[str, list[str]], kept: str = "") -> str:
    """A member's file; `initial` is the initial-cluster-state and the initial-cluster."""
    state, members = initial
    own = (pod, cluster.client_url(pod), cluster.peer_url(pod), state, ",".join(members))
    return _dump(dict(zip(_OWN, own, strict=True))) + (kept or settings_text(cluster, version))


def _value(name: str, text: str) -> Any:
    """An option's text in the type that etcd's configuration file requires."""
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"-?\d+", text):
        return int(text)
    if found := _DURATION.match(text):
        return int(found[1]) * _NANOSECONDS[found[2]]
    return text.split(",") if name in _LISTS else text


def _dump(values: Mapping[str, Any], indent: str = "") -> str:
    """YAML with one line a setting; scalars as JSON, which is YAML and can't be misread."""
    text = ""
    for name, value in values.items():
        if isinstance(value, dict):
            text += f"{indent}{name}:\n{_dump(value, indent + '  ')}"
        else:
            text += f"{indent}{name}: {json.dumps(value)}\n"
    return text

"""The configuration file of each member: the whole truth about how it starts, and readable by a person.

etcd ignores other flags and ETCD_* variables when it has a configuration file. `initial-cluster` decides what a member
without data may do, so the file is open only as long as it must be:

- forming: `new` with the full list, until the first quorum was seen;
- joining: `existing` with the full list, only while this one member starts for the first time;
- sealed: `existing`, with only itself in the list, ever after. A member with its data starts as always; one whose data
  is gone refuses to start, and so can never vote under its old identity with an empty log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..api.cluster import Cluster
from ..etcd import versions
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
# What each member has of its own in its file.
_OWN = ("name", "advertise-client-urls", "initial-advertise-peer-urls", "initial-cluster-state", "initial-cluster")
_LISTS = {"log-outputs", "cipher-suites"}
_DURATION = re.compile(r"^(\d+)(ms|s|m|h)$")
_NANOSECONDS = {"ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}


def file_name(pod: str) -> str:
    return f"{pod}.yaml"


def forming(cluster: Cluster, pods: list[str]) -> dict[str, str]:
    """The files with which a new cluster of these pods starts for the first time."""
    initial = [_initial(cluster, pod) for pod in pods]
    return {file_name(pod): _file(cluster, pod, "new", initial) for pod in pods}


def formed(
    cluster: Cluster, pods: list[str], opened: Mapping[str, list[str]], kept: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The files ever after: sealed, but for the members that have yet to start for the first time.

    For these, `opened` has the whole initial-cluster, which must be what the member list says. `kept` has the settings
    of members that keep those they have.
    """
    return {
        file_name(pod): _file(
            cluster, pod, "existing", opened.get(pod, [_initial(cluster, pod)]), (kept or {}).get(pod, "")
        )
        for pod in pods
    }


def settings_in(text: str) -> str:
    """What a file has of settings that are the same for every member."""
    own = tuple(f"{name}: " for name in _OWN)
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith(own))


def settings_text(cluster: Cluster) -> str:
    return _dump(settings(cluster))


def is_sealed(cluster: Cluster, pod: str, text: str) -> bool:
    """Is this a file with which only a member that has its data can start?"""
    lines = text.splitlines()
    alone = json.dumps(_initial(cluster, pod))
    return 'initial-cluster-state: "existing"' in lines and f"initial-cluster: {alone}" in lines


def settings(cluster: Cluster) -> dict[str, Any]:
    """What is the same for every member."""
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
        if cluster.tls.mode == "Managed" and not cluster.version.startswith("3.5."):  # which reads it from a flag only
            # Members would look up the name of whoever calls, and turn a new pod away that DNS does not know yet.
            # Nobody but members has a certificate of our authority for peers.
            peer["skip-client-san-verification"] = True
        values |= {"client-transport-security": _transport("server"), "peer-transport-security": peer}
    options = cluster.options
    if quota := options.get("quotaBackendBytes"):
        values["quota-backend-bytes"] = int(parse(str(quota)))
    values |= {name: options[field] for field, name in _TYPED.items() if field in options}
    extra = versions.renamed(options.get("extra", {}), cluster.version)
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


def _file(cluster: Cluster, pod: str, state: str, initial: list[str], kept: str = "") -> str:
    own = (pod, cluster.client_url(pod), cluster.peer_url(pod), state, ",".join(initial))
    return _dump(dict(zip(_OWN, own, strict=True))) + (kept or settings_text(cluster))


def _value(name: str, text: str) -> Any:
    """An option's text in the type that etcd's configuration file wants: a flag's text will not do there."""
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

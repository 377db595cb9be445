"""The names of etcd's options, which differ between versions."""

from __future__ import annotations

from collections.abc import Mapping

from .versions import parse

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

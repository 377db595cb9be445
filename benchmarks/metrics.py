"""Parser for metrics in the Prometheus text format. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

_SAMPLE = re.compile(r"^(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_CONTROLLER = "etcdcluster-v1beta1-controller"  # ansible-operator derives the name from kind and version


@dataclass(frozen=True)
class Reconciles:
    """Completed reconciles since the operator started or since an earlier sample."""

    count: float
    seconds: float
    errors: float

    def since(self, before: Reconciles) -> Reconciles:
        return Reconciles(self.count - before.count, self.seconds - before.seconds, self.errors - before.errors)


def reconciles(text: str) -> Reconciles:
    return Reconciles(
        count=total(text, "controller_runtime_reconcile_time_seconds_count", controller=_CONTROLLER),
        seconds=total(text, "controller_runtime_reconcile_time_seconds_sum", controller=_CONTROLLER),
        errors=total(text, "controller_runtime_reconcile_errors_total", controller=_CONTROLLER),
    )


def total(text: str, name: str, **labels: str) -> float:
    """Sum of the samples with this name and these labels; 0 if there are none."""
    found = 0.0
    for line in text.splitlines():
        sample = _SAMPLE.match(line)
        if sample and sample["name"] == name and labels.items() <= dict(_LABEL.findall(sample["labels"] or "")).items():
            found += float(sample["value"])
    return found

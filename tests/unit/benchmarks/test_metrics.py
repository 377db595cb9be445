from __future__ import annotations

import pytest

from benchmarks import metrics

TEXT = """\
# HELP controller_runtime_reconcile_time_seconds Length of time per reconciliation per controller
# TYPE controller_runtime_reconcile_time_seconds histogram
controller_runtime_reconcile_time_seconds_bucket{controller="etcdcluster-v1beta1-controller",le="0.005"} 0
controller_runtime_reconcile_time_seconds_bucket{controller="etcdcluster-v1beta1-controller",le="+Inf"} 12
controller_runtime_reconcile_time_seconds_sum{controller="etcdcluster-v1beta1-controller"} 15.25
controller_runtime_reconcile_time_seconds_count{controller="etcdcluster-v1beta1-controller"} 12
controller_runtime_reconcile_time_seconds_count{controller="another"} 99
controller_runtime_reconcile_errors_total{controller="etcdcluster-v1beta1-controller"} 1
process_resident_memory_bytes 7.3412608e+07
info{text="a \\"b\\", c={1}",more="x"} 2
"""


def test_only_reconciles_of_the_etcdcluster_controller_are_counted() -> None:
    assert metrics.reconciles(TEXT) == metrics.Reconciles(count=12, seconds=15.25, errors=1)


def test_missing_samples_count_as_zero() -> None:
    assert metrics.reconciles("") == metrics.Reconciles(0, 0, 0)


def test_since_subtracts_an_earlier_sample() -> None:
    later = metrics.Reconciles(count=14, seconds=16.25, errors=1)
    assert later.since(metrics.reconciles(TEXT)) == metrics.Reconciles(count=2, seconds=1, errors=0)


def test_samples_without_labels_and_with_quoted_labels_are_parsed() -> None:
    assert metrics.total(TEXT, "process_resident_memory_bytes") == pytest.approx(73412608)
    assert metrics.total(TEXT, "info", more="x") == 2
    assert metrics.total(TEXT, "info", more="y") == 0
    assert metrics.total(TEXT, "controller_runtime_reconcile_time_seconds_count") == 111

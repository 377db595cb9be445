from __future__ import annotations

import pytest

from benchmarks import machine


def test_busy_percent_excludes_idle_and_iowait() -> None:
    before = machine.read_cpu_times("cpu  100 0 100 700 100 0 0 0 50 0\ncpu0 1 2 3\n")
    after = machine.read_cpu_times("cpu  150 0 130 780 120 10 10 0 90 0\ncpu0 1 2 3\n")
    assert machine.busy_percent(before, after) == pytest.approx(50)
    assert machine.busy_percent(before, before) == 0


def test_memory_and_cpu_model_are_parsed() -> None:
    assert machine.mib("MemTotal:       24682416 kB\nMemAvailable:   23914776 kB\n", "MemAvailable") == 23354
    assert machine.cpu_model("processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\n") == "Some CPU @ 2 GHz"


def test_facts_include_memory_of_this_machine() -> None:
    facts = machine.facts()
    assert isinstance(facts["memory_mib"], int)
    assert facts["memory_mib"] > 100
    assert machine.available_mib() <= facts["memory_mib"]

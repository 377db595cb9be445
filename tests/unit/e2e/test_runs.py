from __future__ import annotations

import pytest

from tests.e2e.checks import runs
from tests.e2e.faults import damage


@pytest.mark.parametrize(
    ("times", "missed", "said"),
    [
        (["030000", "030030", "030100"], {}, []),
        (["030000", "030000", "030030"], {}, ["often-20261116-030000 was done twice"]),
        (["030000", "030100"], {}, ["none between 1794798000 and 1794798060"]),
        (["030000", "030100"], {"often-20261116-030100": 1}, []),
        (["030000", "030130"], {"often-20261116-030130": 1}, ["none between 1794798000 and 1794798090"]),
        (["030000", "030030"], {"often-20261116-030030": 1}, ["none between 1794798000 and 1794798030"]),
        ([], {}, []),
    ],
)
def test_missing_and_double_runs_are_found(times: list[str], missed: dict[str, int], said: list[str]) -> None:
    assert runs.violations([f"often-20261116-{time}" for time in times], "often", 30, missed) == said


def test_a_run_that_was_skipped_is_not_missing() -> None:
    names = ["often-20261116-030000", "often-20261116-030130"]
    assert runs.violations(names, "often", 30, {}, {1794798030, 1794798060}) == []
    assert runs.violations(names, "often", 30, {}, {1794798030}) == ["none between 1794798000 and 1794798090"]


def test_damaged_copies_differ_from_the_original() -> None:
    good = bytes(range(256)) * 100
    copies = damage.copies(good)
    assert len(copies["cut"]) == len(good) // 2
    assert sum(one != other for one, other in zip(copies["flipped"], good, strict=True)) == 1
    assert copies["junk"] != good

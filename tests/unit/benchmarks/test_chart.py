from __future__ import annotations

from xml.etree import ElementTree

import pytest

from benchmarks import chart
from benchmarks.chart import Curve, Panel

SPACE = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("highest", [0.003, 0.7, 1, 4.9, 5, 50, 99, 101, 400, 12345.6])
def test_ticks_cover_the_highest_value(highest: float) -> None:
    found = chart.ticks(highest)
    assert found[0] == 0
    assert found[-2] < highest * 1.0001
    assert found[-1] >= highest * 0.9999
    assert 3 <= len(found) <= 7


def test_ticks_without_values_are_zero_and_one() -> None:
    assert chart.ticks(0) == [0, 1]


def test_ticks_are_round_numbers() -> None:
    assert chart.ticks(50) == [0, 10, 20, 30, 40, 50]
    assert chart.ticks(3.2) == [0, 1, 2, 3, 4]


def test_chart_has_titles_units_legend_and_all_points_inside() -> None:
    curves = (
        Curve("measured", ((1, 2.0), (10, 9.0), (50, 44.0))),
        Curve("aim & end", ((0, 5), (50, 5)), dashed=True),
        Curve("third", ((1, 1),)),
    )
    root = ElementTree.fromstring(chart.svg("All <of> it", [Panel("One", "seconds", curves)] * 2))  # noqa: S314 - ours
    texts = [element.text for element in root.iter(f"{SPACE}text")]
    for expected in ("All <of> it", "One", "seconds", "clusters", "measured", "aim & end"):
        assert expected in texts
    circles = list(root.iter(f"{SPACE}circle"))
    assert len(circles) == 8
    for circle in circles:
        assert 0 < float(circle.attrib["cx"]) < 330
        assert 0 < float(circle.attrib["cy"]) < 300
    assert root.attrib["width"] == "660"
    lowest = max(float(text.attrib["y"]) for panel in root.iter(f"{SPACE}g") for text in panel.iter(f"{SPACE}text"))
    assert lowest + 34 < float(root.attrib["height"])

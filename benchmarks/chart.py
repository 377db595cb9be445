"""SVG chart: panels side by side, each with curves over the number of clusters. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape

Point = tuple[float, float]

_WIDTH, _HEIGHT = 330, 320  # of a panel
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 18, 56, 104  # margins; the bottom one has space for a legend of three lines
_STYLE = """
text { font: 12px system-ui, sans-serif; fill: #444 }
.title { font-size: 16px; font-weight: 600; fill: #222 }
.panel { font-size: 13px; font-weight: 600; fill: #222 }
.grid { stroke: #e6e6e6 }
.axis { stroke: #999 }
.curve { fill: none; stroke-width: 2 }
"""


@dataclass(frozen=True)
class Curve:
    label: str
    points: tuple[Point, ...]
    colour: str = "#1f6feb"
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    title: str
    unit: str  # of the vertical axis
    curves: tuple[Curve, ...]


def svg(title: str, panels: list[Panel]) -> str:
    """The complete SVG document."""
    width, height = _WIDTH * len(panels), _HEIGHT + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{escape(title)}">',
        f"<style>{_STYLE}</style>",
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text class="title" x="16" y="26">{escape(title)}</text>',
    ]
    for number, panel in enumerate(panels):
        parts += [f'<g transform="translate({number * _WIDTH} 34)">', *_panel(panel), "</g>"]
    return "\n".join([*parts, "</svg>"]) + "\n"


def ticks(highest: float) -> list[float]:
    """Round numbers from 0 to just above the highest value, four to six of them."""
    if highest <= 0:
        return [0.0, 1.0]
    rough = highest / 5
    power = 10 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)
    return [round(number * step, 10) for number in range(math.ceil(highest / step - 1e-9) + 1)]


def _panel(panel: Panel) -> list[str]:
    points = [point for curve in panel.curves for point in curve.points]
    across, up = ticks(max(x for x, _ in points)), ticks(max(y for _, y in points))
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM

    def place(point: Point) -> tuple[float, float]:
        x, y = point
        return _LEFT + x / across[-1] * (right - _LEFT), bottom - y / up[-1] * (bottom - _TOP)

    parts = [
        f'<text class="panel" x="{_LEFT}" y="20">{escape(panel.title)}</text>',
        f'<text x="{_LEFT}" y="40">{escape(panel.unit)}</text>',
    ]
    for value in up:
        y = place((0, value))[1]
        parts += [
            f'<line class="grid" x1="{_LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>',
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>',
        ]
    parts += [
        f'<text x="{place((value, 0))[0]:.1f}" y="{bottom + 18}" text-anchor="middle">{value:g}</text>'
        for value in across
    ]
    parts += [
        f'<line class="axis" x1="{_LEFT}" y1="{bottom}" x2="{right}" y2="{bottom}"/>',
        f'<text x="{(_LEFT + right) / 2:.0f}" y="{bottom + 36}" text-anchor="middle">clusters</text>',
    ]
    for number, curve in enumerate(panel.curves):
        parts += [*_curve(curve, [place(point) for point in curve.points]), *_legend(curve, number)]
    return parts


def _curve(curve: Curve, places: list[tuple[float, float]]) -> list[str]:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    line = f'<polyline class="curve" points="{path}" stroke="{curve.colour}"{_dashes(curve)}/>'
    if curve.dashed:
        return [line]
    return [line, *(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{curve.colour}"/>' for x, y in places)]


def _legend(curve: Curve, number: int) -> list[str]:
    y = _HEIGHT - _BOTTOM + 56 + 18 * number
    return [
        f'<line x1="{_LEFT}" y1="{y - 4}" x2="{_LEFT + 24}" y2="{y - 4}" stroke="{curve.colour}" stroke-width="2"'
        f"{_dashes(curve)}/>",
        f'<text x="{_LEFT + 30}" y="{y}">{escape(curve.label)}</text>',
    ]


def _dashes(curve: Curve) -> str:
    return ' stroke-dasharray="5 4"' if curve.dashed else ""

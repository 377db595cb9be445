from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tools.generate.pages import PAGES

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(("path", "page"), PAGES.items(), ids=lambda each: getattr(each, "name", ""))
def test_page_is_current(path: Path, page: Callable[[], str]) -> None:
    assert path.read_text() == page(), "run: make generate"


def test_every_generator_is_registered() -> None:
    own = {"__init__.py", "__main__.py", "pages.py"}
    generators = [path for path in (ROOT / "tools/generate").glob("*.py") if path.name not in own]
    assert len(generators) == len(PAGES)

from __future__ import annotations

from tools import api


def test_page_is_generated_from_the_crds() -> None:
    assert api.PAGE.read_text() == api.page(), "run: python -m tools.api"

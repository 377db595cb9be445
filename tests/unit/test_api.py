from __future__ import annotations

from tools import api


def test_the_page_is_what_the_crds_say() -> None:
    assert api.PAGE.read_text() == api.page(), "run: python -m tools.api"

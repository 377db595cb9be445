"""All generated pages. A new generator is one more entry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from . import api, conditions, states

PAGES: Mapping[Path, Callable[[], str]] = {module.PAGE: module.page for module in (api, conditions, states)}

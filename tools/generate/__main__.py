"""Write the generated pages: python -m tools.generate."""

from __future__ import annotations

from .pages import PAGES


def main() -> None:
    for path, page in PAGES.items():
        path.write_text(page())


if __name__ == "__main__":
    main()

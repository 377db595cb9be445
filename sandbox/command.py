"""Command lines: how a program of the sandbox or of tests/e2e ends."""

from __future__ import annotations

import sys
from collections.abc import Callable

from .errors import SandboxError


def run(name: str, main: Callable[[], None]) -> None:
    """Run main(). A SandboxError is one line on stderr and exit code 1."""
    try:
        main()
    except SandboxError as error:
        sys.exit(f"{name}: {error}")
    except KeyboardInterrupt:
        print(f"{name}: interrupted; nothing incomplete is left", file=sys.stderr)
        sys.exit(130)

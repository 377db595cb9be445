"""Command line: python -m sandbox.images builds the operator's image and prints the path of its archive."""

from __future__ import annotations

import sys

from ..errors import SandboxError
from . import operator


def main() -> int:
    try:
        print(operator.archive())
    except SandboxError as error:
        print(f"image: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("image: interrupted; no partial image was left", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

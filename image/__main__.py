"""The command line: python -m image. Prints the path of the archive."""

from __future__ import annotations

import sys

from sandbox.errors import SandboxError

from . import build


def main() -> int:
    try:
        print(build.image())
    except SandboxError as error:
        print(f"image: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("image: interrupted; nothing incomplete is left", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Command line: python -m sandbox.images builds the operator's image and prints the path of its archive."""

from __future__ import annotations

from .. import command
from . import operator

if __name__ == "__main__":
    command.run("image", lambda: print(operator.archive()))

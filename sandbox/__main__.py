"""The command line: python -m sandbox COMMAND."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from . import checks, cluster, collect, command, faults, layout


def main() -> None:
    arguments = _parser().parse_args()
    match arguments.command:
        case "prepare":
            checks.root()
            checks.disk()
            cluster.prepare()
        case "up":
            cluster.up(arguments.nodes)
        case "down":
            cluster.down()
        case "status":
            print(cluster.status())
        case "kubeconfig":
            cluster.existing()
            print(layout.kubeconfig())
        case "load":
            cluster.load_everywhere(arguments.archive.resolve())
        case "node":
            faults.ACTIONS[arguments.action](arguments.name)
        case "collect":
            collect.collect(arguments.folder)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sandbox", description=sys.modules["sandbox"].__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("prepare", help="install packages, build programs and images, without starting anything")
    up = commands.add_parser("up", help="start the sandbox")
    up.add_argument("--nodes", type=int, default=3, help="1 to 5 (default 3)")
    commands.add_parser("down", help="remove the sandbox and everything it created, except the cache")
    commands.add_parser("status", help="show the state of the hosts and nodes")
    commands.add_parser("kubeconfig", help="print the path of the kubeconfig")
    load = commands.add_parser("load", help="load an image archive into every node")
    load.add_argument("archive", type=Path)
    node = commands.add_parser("node", help="start or end a fault")
    node.add_argument("action", choices=sorted(faults.ACTIONS))
    node.add_argument("name")
    collect_command = commands.add_parser("collect", help="copy all logs, events and objects into a folder")
    collect_command.add_argument("folder", type=Path)
    return parser


if __name__ == "__main__":
    command.run("sandbox", main)

"""Runs the benchmarks on the sandbox: python -m benchmarks [MEASURE …], or python -m benchmarks chart [RESULTS …].

Prints one row per measure and writes all of them to one JSON file. `chart` draws the growth curves and writes the
figures into docs/benchmarks.md.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import KubeError

from sandbox.errors import SandboxError

from . import backup, bootstrap, growth, kube, machine, membership, report, results, settled, upgrade
from .figures import STAGES, Figures

SEPARATE: dict[str, Callable[[], Figures]] = {
    "settled_reconcile": settled.settled_reconcile,
    "apply_to_healthy": bootstrap.three_members,
    "ten_at_once": bootstrap.ten_at_once,
    "membership": membership.membership,
    "upgrade": upgrade.upgrade,
    "backup": backup.backup,
}
MEASURES = (*SEPARATE, *STAGES)
_WITHOUT_SANDBOX = {"backup"}


def main() -> None:
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit("benchmarks: terminated by a signal. Changes to the sandbox are reverted.")
    )
    wanted = sys.argv[1:]
    try:
        if wanted[:1] == ["chart"]:
            newest = results.newest()
            report.write([Path(name) for name in wanted[1:]] or ([newest] if newest else []))
        else:
            _run(wanted or list(MEASURES))
    except (SandboxError, KubeError) as error:
        sys.exit(f"benchmarks: {error}")


def _run(wanted: list[str]) -> None:
    if unknown := set(wanted) - set(MEASURES):
        raise SandboxError(f"Unknown measure: {', '.join(sorted(unknown))}. Choose from: {', '.join(MEASURES)}.")
    if set(wanted) - _WITHOUT_SANDBOX:
        kube.require_no_other_clusters()
    found: results.Results = {
        "machine": machine.facts(),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    path = results.FOLDER / f"{time.strftime('%Y%m%d-%H%M%S')}.json"
    for name, figures in _measure(wanted):
        found[name] = figures
        results.write(path, found)  # after each measure, so that a failure does not lose the earlier results
        print(results.row(name, figures), flush=True)
    print(f"Results written to {path}.")


def _measure(wanted: list[str]) -> Iterator[tuple[str, Figures]]:
    for name, measure in SEPARATE.items():
        if name in wanted:
            yield name, measure()
    if staged := [name for name in STAGES if name in wanted]:
        yield from growth.measure(staged).items()


if __name__ == "__main__":
    main()

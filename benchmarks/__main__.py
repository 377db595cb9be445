"""Runs the benchmarks on the sandbox: python -m benchmarks [MEASURE …], or python -m benchmarks chart [RESULTS …].

A row for each measure, and all of it in one JSON file. `chart` draws the growth curves and writes the figures into
docs/benchmarks.md.
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

ALONE: dict[str, Callable[[], Figures]] = {
    "settled_reconcile": settled.settled_reconcile,
    "apply_to_healthy": bootstrap.three_members,
    "ten_at_once": bootstrap.ten_at_once,
    "membership": membership.membership,
    "upgrade": upgrade.upgrade,
    "backup": backup.backup,
}
MEASURES = (*ALONE, *STAGES)
_WITHOUT_SANDBOX = {"backup"}


def main() -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("benchmarks: ended by a signal; what was changed is put back"))
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
        raise SandboxError(f"There is no measure {', '.join(sorted(unknown))}; there are {', '.join(MEASURES)}.")
    if set(wanted) - _WITHOUT_SANDBOX:
        kube.no_other_clusters()
    found: results.Results = {
        "machine": machine.facts(),
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    path = results.FOLDER / f"{time.strftime('%Y%m%d-%H%M%S')}.json"
    for name, figures in _measure(wanted):
        found[name] = figures
        results.write(path, found)  # after each, so that a failure loses nothing that was measured
        print(results.row(name, figures), flush=True)
    print(f"written to {path}")


def _measure(wanted: list[str]) -> Iterator[tuple[str, Figures]]:
    for name, measure in ALONE.items():
        if name in wanted:
            yield name, measure()
    if together := [name for name in STAGES if name in wanted]:
        yield from growth.measure(together).items()


if __name__ == "__main__":
    main()

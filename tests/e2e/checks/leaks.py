"""Find credentials where they must not be: python -m tests.e2e.checks.leaks NAMESPACE SECRET…

Searches all objects of the namespace except Secrets, the logs of its pods and of the operator, the artifacts of the
operator's runs, and the API server's audit log.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from sandbox import cluster as sandbox
from sandbox import command, layout
from sandbox.errors import SandboxError

from ..fixtures.s3_server import SECRET_KEY

_KINDS = "pods,jobs,configmaps,events,statefulsets,etcdclusters,etcdbackups,etcdbackupschedules,etcdrestores"
_OPERATOR = "--namespace=etcdops-system"


def places(namespace: str) -> Iterator[tuple[str, str]]:
    """Places without credentials, with their content."""
    yield "the objects", sandbox.kubectl("get", _KINDS, f"--namespace={namespace}", "--output=json")
    yield "the operator's log", sandbox.kubectl("logs", _OPERATOR, "deployment/etcdops", "--tail=-1")
    for name in sandbox.kubectl("get", "pods", f"--namespace={namespace}", "--output=name").split():
        yield f"the log of {name}", sandbox.kubectl("logs", f"--namespace={namespace}", name, "--all-containers")
    yield "the audit log", (layout.control_plane().logs / "audit.log").read_text(errors="replace")


def in_artifacts(secret: str) -> str:
    """The files of the operator's runs that contain it."""
    try:
        search = ("grep", "--recursive", "--files-with-matches", secret, "/tmp")  # noqa: S108  the operator's
        return sandbox.kubectl("exec", _OPERATOR, "deployment/etcdops", "--", *search)
    except SandboxError:  # grep found none
        return ""


def main() -> None:
    namespace, *more = sys.argv[1:]
    found = [place for place, text in places(namespace) for secret in (SECRET_KEY, *more) if secret in text]
    found += [path for secret in (SECRET_KEY, *more) for path in in_artifacts(secret).split()]
    if found:
        sys.exit(f"credentials were found in: {', '.join(found)}")


if __name__ == "__main__":
    command.run("leaks", main)

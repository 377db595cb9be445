"""Is anything of the credentials where it must not be? python -m proof.secrets NAMESPACE SECRET…

Looks into every object of the namespace but the Secrets, the logs of its pods and of the operator, the artifacts of the
operator's runs, and what the API server noted.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from sandbox import cluster as sandbox
from sandbox import layout
from sandbox.errors import SandboxError

from .s3 import SECRET_KEY

_KINDS = "pods,jobs,configmaps,events,statefulsets,etcdclusters,etcdbackups,etcdbackupschedules,etcdrestores"
_OPERATOR = "--namespace=etcdops-system"


def places(namespace: str) -> Iterator[tuple[str, str]]:
    """Where it must not be, with what is there."""
    yield "the objects", sandbox.kubectl("get", _KINDS, f"--namespace={namespace}", "--output=json")
    yield "the operator's log", sandbox.kubectl("logs", _OPERATOR, "deployment/etcdops", "--tail=-1")
    for name in sandbox.kubectl("get", "pods", f"--namespace={namespace}", "--output=name").split():
        yield f"the log of {name}", sandbox.kubectl("logs", f"--namespace={namespace}", name, "--all-containers")
    yield "the audit log", (layout.control_plane().logs / "audit.log").read_text(errors="replace")


def in_artifacts(secret: str) -> str:
    """The files of the operator's runs that hold it."""
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
    main()

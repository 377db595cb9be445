"""Every text that a user can write holds a template here, and must come out as it went in: templates.py NAMESPACE.

The fields are read from the CRD. Each that does not refuse the text at admission gets an EtcdCluster of its own; the
text must be found again in what the operator makes of it, or in what it says when Kubernetes refuses that. A template
that runs would leave a file in the operator's pod.
"""

from __future__ import annotations

import copy
import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import yaml

from sandbox import cluster as sandbox
from sandbox import layout
from sandbox.errors import SandboxError

MARK = "/tmp/a-template-was-run"  # in the operator's pod
NASTY = "{{ lookup('pipe','touch " + MARK + "') }}"
Path = tuple[str | int, ...]


def main() -> None:
    namespace = sys.argv[1]
    crd = yaml.safe_load((layout.REPOSITORY / "deploy/crd/etcdclusters.yaml").read_text())
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    paths = [("metadata", "annotations", "text"), *(("spec", *path) for path in _texts(schema))]
    accepted = [path for path in paths if _accepts(_with(_resource(namespace, "nasty"), path))]
    names = {f"nasty-{number}": path for number, path in enumerate(accepted)}
    clusters = [_with(_resource(namespace, name), path) for name, path in names.items()]
    everything = {"apiVersion": "v1", "kind": "List", "items": clusters}
    sandbox.kubectl("apply", "--filename=-", stdin=json.dumps(everything))
    for name, path in names.items():
        _wait_for_text(namespace, name, path)
    found = sandbox.kubectl("exec", "deployment/etcdops", "-n", "etcdops-system", "--", "ls", "/tmp")
    assert MARK.removeprefix("/tmp/") not in found, "a template was run in the operator"
    sandbox.kubectl("delete", "etcd", *names, f"--namespace={namespace}", "--wait=true")
    print(
        f"{len(paths)} texts tried, {len(paths) - len(accepted)} refused at admission, {len(accepted)} carried as text"
    )


def _resource(namespace: str, name: str) -> dict[str, Any]:
    return {
        "apiVersion": "etcdops.dev/v1beta1",
        "kind": "EtcdCluster",
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"size": 1, "version": "3.6.16", "storage": {"type": "Memory", "size": "256Mi"}},
    }


def _texts(schema: dict[str, Any], prefix: Path = ()) -> Iterator[Path]:
    """Every place in the schema where a text can stand, also in lists and maps."""
    if schema.get("type") == "string" or schema.get("x-kubernetes-int-or-string"):
        if "enum" not in schema:
            yield prefix
    elif "items" in schema:
        yield from _texts(schema["items"], (*prefix, 0))
    elif isinstance(schema.get("additionalProperties"), dict):
        for key in ("metrics",) if prefix[-1] == "extra" else ("text",):
            yield from _texts(schema["additionalProperties"], (*prefix, key))
    for name, field in schema.get("properties", {}).items():
        yield from _texts(field, (*prefix, name))


def _with(resource: dict[str, Any], path: Path) -> dict[str, Any]:
    """The resource with the text at that place."""
    changed = copy.deepcopy(resource)
    place: Any = changed
    for key, following in zip(path, (*path[1:], None), strict=True):
        fresh: Any = NASTY if following is None else [] if isinstance(following, int) else {}
        if isinstance(place, list):
            if not place:
                place.append(fresh)
        elif following is None or key not in place:
            place[key] = fresh
        place = place[key]
    return changed


def _accepts(resource: dict[str, Any]) -> bool:
    try:
        sandbox.kubectl("create", "--dry-run=server", "--filename=-", stdin=json.dumps(resource))
    except SandboxError:
        return False
    return True


def _wait_for_text(namespace: str, name: str, path: Path) -> None:
    text = json.dumps(NASTY)[1:-1]
    for _ in range(90):
        if path[0] == "metadata":  # nothing is made of it; the operator must only have seen it
            found = '"observedGeneration"' in sandbox.kubectl("get", "etcd", name, "-n", namespace, "-ojson")
        else:
            found = text in _made(namespace, name).replace("\\\\", "\\")
        if found:
            return
        time.sleep(1)
    sys.exit(f"the text in {'.'.join(map(str, path))} did not come out within 90 s: {_made(namespace, name)}")


def _made(namespace: str, name: str) -> str:
    """What the operator made and said."""
    objects = f"statefulset/{name} configmap/{name}-config".split()
    made = sandbox.kubectl("get", *objects, "-n", namespace, "--ignore-not-found", "-ojson")
    status = json.loads(sandbox.kubectl("get", "etcd", name, "-n", namespace, "-ojson")).get("status", {})
    return made + json.dumps(status.get("message"))


if __name__ == "__main__":
    main()

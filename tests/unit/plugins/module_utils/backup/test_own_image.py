from __future__ import annotations

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.backup.observe import own_image
from ansible_collections.etcdops.etcd.plugins.module_utils.kube.client import Kube, KubeError

from tests.unit.plugins.apiserver import ApiServer


def test_the_image_is_that_of_the_operators_pod_or_of_the_environment(
    apiserver: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    kube = Kube(apiserver.settings)
    containers = [{"name": "sidecar", "image": "other:1"}, {"name": "operator", "image": "etcdops:1"}]
    meta = {"namespace": "default", "name": "etcdops-0"}
    kube.create({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": containers}})
    for name in ("OPERATOR_IMAGE", "POD_NAMESPACE", "POD_NAME"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(KubeError, match="set OPERATOR_IMAGE to an image"):
        own_image(kube)
    monkeypatch.setenv("POD_NAMESPACE", "default")
    monkeypatch.setenv("POD_NAME", "etcdops-0")
    assert own_image(kube) == "etcdops:1"
    monkeypatch.setenv("OPERATOR_IMAGE", "etcdops:2")
    assert own_image(kube) == "etcdops:2"

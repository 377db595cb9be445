from __future__ import annotations

import copy

import pytest

from . import crd

# Kubernetes' own types are shown by example, not in full.
FOREIGN = ("pod.affinity.", "pod.tolerations[]", "pod.topologySpreadConstraints[]")


@pytest.mark.parametrize("name", ["etcdcluster.yaml", "etcdcluster-full.yaml"])
def test_sample_conforms_to_the_crd(name: str) -> None:
    sample = crd.load(crd.SAMPLES / name)
    assert (sample["apiVersion"], sample["kind"]) == ("etcdops.dev/v1beta1", "EtcdCluster")
    assert list(crd.problems(sample["spec"], crd.part("spec"))) == []


def test_small_sample_is_the_one_in_the_documentation() -> None:
    sample = crd.load(crd.SAMPLES / "etcdcluster.yaml")
    assert sample["metadata"] == {"name": "example"}
    assert sample["spec"] == {"size": 3, "version": "3.6.16"}


def test_full_sample_shows_every_field() -> None:
    text = (crd.SAMPLES / "etcdcluster-full.yaml").read_text()
    names = {
        field.path.rsplit(".", 1)[-1]
        for field in crd.fields(crd.part("spec"))
        if field.path and field.path[-1] not in "]}" and not field.path.startswith(FOREIGN)
    }
    assert {name for name in names if f" {name}:" not in text} == set()


def test_checker_finds_violations() -> None:
    spec = crd.load(crd.SAMPLES / "etcdcluster-full.yaml")["spec"]
    wrong = copy.deepcopy(spec)
    del wrong["version"]
    wrong["size"] = 10
    wrong["storage"]["typo"] = 1
    wrong["tls"]["mode"] = "On"
    wrong["pod"]["tolerations"] = [{"tolerationSeconds": "3"}]
    found = [problem.split(":")[0] for problem in crd.problems(wrong, crd.part("spec"))]
    assert sorted(found) == [
        ".pod.tolerations[0].tolerationSeconds",
        ".size",
        ".storage.typo",
        ".tls.mode",
        ".version",
    ]

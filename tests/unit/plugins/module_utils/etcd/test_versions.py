from __future__ import annotations

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd.versions import of_image, parse


def test_versions_are_parsed_from_text_and_images() -> None:
    assert str(parse("3.7.0-rc.1")) == "3.7.0"
    assert parse("3.6").series == "3.6"
    assert of_image("registry.example.com:5000/etcd:v3.6.16") == "3.6.16"
    assert of_image("registry.example.com:5000/etcd@sha256:0") == ""
    with pytest.raises(ValueError, match="is not an etcd version"):
        parse("latest")

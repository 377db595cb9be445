from __future__ import annotations

import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.kube import quantity


@pytest.mark.parametrize(
    ("text", "number"), [("1Gi", 1024**3), ("1024Mi", 1024**3), ("2", 2), ("1k", 1000), ("1.5Ki", 1536), ("1e3", 1000)]
)
def test_quantity_is_parsed(text: str, number: int) -> None:
    assert quantity.parse(text) == number


@pytest.mark.parametrize("text", ["", "Gi", "1Xi", "one", "3.6.16", "."])
def test_text_that_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a quantity"):
        quantity.parse(text)


@pytest.mark.parametrize(
    ("size", "text"), [(20480, "20Ki"), (20481, "21Ki"), (500, "500"), (3 * 1024**3, "3Gi"), (123456789, "120Mi")]
)
def test_size_is_rounded_up(size: int, text: str) -> None:
    assert quantity.rounded(size) == text

"""Errors about keys name the file of the key, which the operator translates into a Secret and its key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyrage
import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.errors import StoreError
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.module import identities_in, recipients_in

IDENTITY = pyrage.x25519.Identity.generate()
Read = Callable[[str | None], list[str]]
OTHER: dict[Read, str] = {recipients_in: str(IDENTITY), identities_in: str(IDENTITY.to_public())}


def test_keys_are_read_without_comments(tmp_path: Path) -> None:
    for read, key in ((identities_in, IDENTITY), (recipients_in, IDENTITY.to_public())):
        (tmp_path / "key").write_text(f"# a comment\n{key}\n")
        assert read(str(tmp_path / "key")) == [str(key)]
        assert read(None) == []


@pytest.mark.parametrize("read", [identities_in, recipients_in])
@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "does not exist"), (b"", "is empty"), (b"nonsense", "must have age's"), (b"\xff", "can't be read")],
)
def test_wrong_key_is_told_with_its_file(tmp_path: Path, read: Read, content: bytes | None, said: str) -> None:
    if content is not None:
        (tmp_path / "key").write_bytes(content)
    with pytest.raises(StoreError) as error:
        read(str(tmp_path / "key"))
    assert str(error.value).startswith(f"{tmp_path / 'key'} {said}")


@pytest.mark.parametrize("read", OTHER)
def test_other_half_of_a_key_is_refused_and_not_shown(tmp_path: Path, read: Read) -> None:
    (tmp_path / "key").write_text(OTHER[read])
    with pytest.raises(StoreError, match="must have age's") as error:
        read(str(tmp_path / "key"))
    assert OTHER[read] not in str(error.value)

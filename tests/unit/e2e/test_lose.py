from __future__ import annotations

from pathlib import Path

from tests.e2e.faults import lose


def _member(folder: Path) -> Path:
    (folder / "wal").mkdir()
    (folder / "snap").mkdir()
    (folder / "wal/0000-0000.wal").write_bytes(b"older")
    (folder / "wal/0001-0009.wal").write_bytes(b"entries!" + bytes(100))
    (folder / "snap/db").write_bytes(bytes(range(256)) * 256)
    return folder


def test_data_directory_is_emptied(tmp_path: Path) -> None:
    (tmp_path / "member").mkdir()
    lose.empty(_member(tmp_path / "member"))
    assert list(tmp_path.iterdir()) == []


def test_first_pages_are_flipped_and_the_rest_is_kept(tmp_path: Path) -> None:
    before = (_member(tmp_path) / "snap/db").read_bytes()
    lose.flip(tmp_path)
    after = (tmp_path / "snap/db").read_bytes()
    assert len(after) == len(before)
    assert all(one != other for one, other in zip(before[:32768], after[:32768], strict=True))
    assert after[32768:] == before[32768:]


def test_newest_wal_file_is_truncated(tmp_path: Path) -> None:
    newest = _member(tmp_path) / "wal/0001-0009.wal"
    lose.cut_half(tmp_path)
    assert newest.read_bytes() == b"entr"
    lose.cut_all(tmp_path)
    assert newest.read_bytes() == b""
    assert (tmp_path / "wal/0000-0000.wal").read_bytes() == b"older"

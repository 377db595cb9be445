from __future__ import annotations

import errno
import hashlib
import io
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyrage
import pytest
from ansible_collections.etcdops.etcd.plugins.module_utils.etcd import http2
from ansible_collections.etcdops.etcd.plugins.module_utils.snapshots.errors import StoreError
from ansible_collections.etcdops.etcd.plugins.modules import etcd_restore, etcd_snapshot, etcd_snapshot_info

from sandbox import layout, parts

from ..etcds import HOST, Certificates, Cluster, Member, eventually, free_ports, healthy
from ..running import Result, fail, run, succeed
from ..stores import BUCKET, SECRET_KEY, Store

IDENTITY = pyrage.x25519.Identity.generate()
FORMS: list[dict[str, bool]] = [{}, {"compress": True}, {"encrypt": True}, {"compress": True, "encrypt": True}]


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "identity").write_text(f"# a comment\n{IDENTITY}\n")
    (tmp_path / "recipients").write_text(f"{IDENTITY.to_public()}\n")
    return {name: str(tmp_path / name) for name in ("identity", "recipients")}


@pytest.fixture(scope="module")
def newest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three members with keys in them."""
    cluster = Cluster(layout.ETCD_VERSIONS[1], tmp_path_factory.mktemp("newest"))
    try:
        cluster.bootstrap(3)
        for number in range(50):
            cluster.client().put(f"key-{number}", f"value-{number}" * 100)
        yield cluster
    finally:
        cluster.end()


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def _etcdutl(version: str) -> str:
    return str(parts.etcd_binary(version, "etcdutl"))


def _save(cluster: Cluster, dest: object, **options: Any) -> Result:
    arguments: dict[str, Any] = {
        "endpoints": cluster.endpoints,
        "dest": str(dest),
        "etcdutl": _etcdutl(cluster.version),
    }
    return succeed(etcd_snapshot, **(arguments | options))


def test_snapshot_of_every_version(one: Cluster, tmp_path: Path) -> None:
    dest = tmp_path / "deep" / "one.db"
    one.client().put("hello", "world")
    saved = _save(one, dest)
    content = dest.read_bytes()
    assert saved["changed"]
    assert (saved["size"], saved["snapshot_size"]) == (len(content), len(content))
    assert saved["sha256"] == hashlib.sha256(content).hexdigest()
    assert hashlib.sha256(content[:-32]).digest() == content[-32:]
    assert (saved["member"], saved["version"]) == ("m0", one.version)
    assert saved["cluster_id"] == f"{one.client().members().cluster_id:x}"
    assert saved["revision"] >= 2
    info = succeed(etcd_snapshot_info, src=str(dest), sha256=saved["sha256"], etcdutl=_etcdutl(one.version))
    assert {key: saved[key] for key in ("hash", "revision", "total_keys", "sha256")} == {
        key: info[key] for key in ("hash", "revision", "total_keys", "sha256")
    }
    assert _names(dest.parent) == ["one.db"]


def test_nothing_is_overwritten_and_check_mode_writes_nothing(newest: Cluster, tmp_path: Path) -> None:
    dest = tmp_path / "x.db"
    assert _save(newest, dest, check=False)["changed"]
    before = dest.read_bytes()
    assert not _save(newest, dest)["changed"]
    assert dest.read_bytes() == before
    arguments: dict[str, Any] = {"endpoints": newest.endpoints, "dest": str(tmp_path / "y.db")}
    assert run(etcd_snapshot, check=True, **arguments)["changed"]
    assert _names(tmp_path) == ["x.db"]


def test_snapshot_is_taken_from_a_follower(newest: Cluster, tmp_path: Path) -> None:
    assert _save(newest, tmp_path / "x.db")["member"] != newest.leader().name


def test_snapshot_over_tls(secure: Cluster, certificates: Certificates, tmp_path: Path) -> None:
    paths: dict[str, Any] = {
        "ca_cert": certificates.path("ca.crt"),
        "client_cert": certificates.path("client.crt"),
        "client_key": certificates.path("client.key"),
    }
    assert _save(secure, tmp_path / "x.db", **paths)["size"] > 0


def test_snapshot_with_auth(own: Cluster, tmp_path: Path) -> None:
    own.enable_auth()
    assert _save(own, tmp_path / "x.db", username="root", password="root")["size"] > 0
    arguments: dict[str, Any] = {
        "endpoints": own.endpoints,
        "dest": str(tmp_path / "y.db"),
        "username": "guest",
        "password": "guest",
    }
    assert "permission denied" in fail(etcd_snapshot, **arguments)
    assert _names(tmp_path) == ["x.db"]


@pytest.mark.parametrize(("where", "form"), [(where, form) for where in ("file", "s3") for form in FORMS])
def test_every_form_is_read_back(  # noqa: PLR0913, PLR0917  fixtures are asked for by name
    newest: Cluster, store: Store, keys: dict[str, str], tmp_path: Path, where: str, form: dict[str, bool]
) -> None:
    key = f"{'-'.join(form) or 'plain'}/snapshot"
    dest = f"s3://{BUCKET}/{key}" if where == "s3" else str(tmp_path / key)
    options: dict[str, Any] = {"compress": form.get("compress", False)}
    options |= {"recipients_file": keys["recipients"]} if form.get("encrypt") else {}
    options |= store.options if where == "s3" else {}
    copy = tmp_path / "copy.db"
    saved = _save(newest, dest, copy=str(copy), **options)
    stored = (store.path(key) if where == "s3" else Path(dest)).read_bytes()
    assert (saved["size"], saved["sha256"]) == (len(stored), hashlib.sha256(stored).hexdigest())
    assert (stored == copy.read_bytes()) == (not form)
    assert (b"value-7" in stored) == (not form)
    read = store.options if where == "s3" else {}
    read |= {"identity_file": keys["identity"]} if form.get("encrypt") else {}
    info = succeed(etcd_snapshot_info, src=dest, etcdutl=_etcdutl(newest.version), **read)
    assert (info["hash"], info["revision"]) == (saved["hash"], saved["revision"])
    back = tmp_path / "back.db"
    assert succeed(etcd_snapshot_info, src=dest, copy=str(back), **read)["changed"]
    assert back.read_bytes() == copy.read_bytes()
    deleting: dict[str, Any] = {"dest": dest, "state": "absent", **(store.options if where == "s3" else {})}
    assert [succeed(etcd_snapshot, **deleting)["changed"] for _ in range(2)] == [True, False]


def test_large_snapshot_goes_to_s3_in_parts(own: Cluster, store: Store) -> None:
    if own.version != layout.ETCD_VERSIONS[1]:
        return  # the same code for all
    for number in range(12):
        own.client(timeout=60).put(f"key-{number}", "x" * 1_000_000)
    saved = _save(own, f"s3://{BUCKET}/large", also={"check": False}, **store.options)
    stored = store.path("large").read_bytes()
    assert (saved["size"], saved["sha256"]) == (len(stored), hashlib.sha256(stored).hexdigest())
    assert saved["size"] > 2 * (5 << 20)
    assert hashlib.sha256(stored[:-32]).digest() == stored[-32:]


def test_snapshot_is_encrypted_for_the_owner_of_an_identity(
    newest: Cluster, keys: dict[str, str], tmp_path: Path
) -> None:
    _save(newest, tmp_path / "x", identity_file=keys["identity"])
    assert (tmp_path / "x").read_bytes().startswith(b"age-encryption.org/v1")


def test_wrong_identity_is_told_with_its_file(newest: Cluster, keys: dict[str, str], tmp_path: Path) -> None:
    _save(newest, tmp_path / "x", recipients_file=keys["recipients"])
    wrong = tmp_path / "wrong"
    wrong.write_text(str(pyrage.x25519.Identity.generate()))
    said = fail(etcd_snapshot_info, src=str(tmp_path / "x"), identity_file=str(wrong))
    assert "can't be decrypted" in said
    assert said.endswith(f"See {wrong}")


def test_unhealthy_cluster_is_waited_for(own: Cluster, tmp_path: Path) -> None:
    (member,) = own.members
    member.freeze()
    late = threading.Timer(2, member.thaw)
    late.start()
    try:
        assert _save(own, tmp_path / "x.db", timeout=0.5)["size"] > 0
    finally:
        late.join()


def test_waiting_for_a_healthy_member_ends(tmp_path: Path) -> None:
    arguments: dict[str, Any] = {"endpoints": ["http://127.0.0.1:1"], "dest": str(tmp_path / "x.db"), "wait": 1}
    assert "no voter of the cluster answers" in fail(etcd_snapshot, **arguments)
    assert _names(tmp_path) == []


def _save_while(cluster: Cluster, dest: Path, fault: Callable[[Member], None]) -> tuple[Result, Member]:
    """Save 20 MB, with a fault of the first member when 1 MB was written; the result and that member."""
    for number in range(20):
        cluster.client(timeout=60).put(f"key-{number}", "x" * 1_000_000)
    leader = cluster.leader().name
    victim = next(member for member in cluster.members if member.name != leader)
    order = [victim.client_url, *(url for url in cluster.endpoints if url != victim.client_url)]
    unfinished = dest.with_name(f".{dest.name}.unfinished")

    def inject() -> None:
        eventually(lambda: unfinished.exists() and unfinished.stat().st_size > 1_000_000)
        fault(victim)

    injecting = threading.Thread(target=inject)
    injecting.start()
    try:
        saved = succeed(etcd_snapshot, endpoints=order, dest=str(dest), etcdutl=_etcdutl(cluster.version))
    finally:
        injecting.join()
    assert saved["snapshot_size"] > 20_000_000
    assert _names(dest.parent) == [dest.name]
    return saved, victim


def test_next_member_is_tried_when_one_is_killed(own_three: Cluster, tmp_path: Path) -> None:
    if own_three.version != layout.ETCD_VERSIONS[1]:
        return  # the same code for all
    _save_while(own_three, tmp_path / "x.db", Member.kill)


def test_next_member_is_tried_when_one_freezes(
    own_three: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if own_three.version != layout.ETCD_VERSIONS[1]:
        return  # the same code for all
    monkeypatch.setattr(http2, "_SILENCE", 0.5)
    monkeypatch.setattr(http2, "_WINDOW", 1 << 17)  # so that it has not sent all of it before it freezes
    try:
        saved, victim = _save_while(own_three, tmp_path / "x.db", Member.freeze)
        assert saved["member"] != victim.name
    finally:
        for member in own_three.members:
            member.thaw()


def test_store_is_given_by_the_environment(newest: Cluster, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the Job of an EtcdBackup."""
    options = store.options
    names = {"endpoint": "AWS_ENDPOINT_URL_S3", "ca_cert": "AWS_CA_BUNDLE"}
    names |= {"access_key": "AWS_ACCESS_KEY_ID", "secret_key": "AWS_SECRET_ACCESS_KEY"}
    for option, variable in names.items():
        monkeypatch.setenv(variable, options.pop(f"s3_{option}"))
    _save(newest, f"s3://{BUCKET}/by/environment", also={"check": False}, **options)
    assert store.path("by/environment").exists()
    assert succeed(etcd_snapshot, dest=f"s3://{BUCKET}/by/environment", state="absent", **options)["changed"]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"dest": "s3://nowhere/x"}, "has no bucket nowhere"),
        ({"s3_secret_key": "wrong"}, f"refuses the access key or its secret for bucket {BUCKET}"),
        ({"s3_access_key": "unknown"}, f"refuses the access key or its secret for bucket {BUCKET}"),
        ({"s3_ca_cert": "/etc/ssl/certs/ca-certificates.crt"}, f"is not trusted for bucket {BUCKET} (UnknownIssuer)"),
        ({"s3_endpoint": f"https://{HOST}:{free_ports(1)[0]}"}, f"can't be reached for bucket {BUCKET}: Connection"),
        ({"s3_endpoint": "https://nowhere.invalid"}, f"can't be reached for bucket {BUCKET}: failed to lookup"),
        ({"dest": f"s3://{BUCKET}"}, "names no object"),
    ],
)
def test_error_names_the_store_and_the_cause(
    newest: Cluster, store: Store, changed: dict[str, str], said: str, tmp_path: Path
) -> None:
    report = tmp_path / "report"
    arguments: dict[str, Any] = {
        "endpoints": newest.endpoints,
        "dest": f"s3://{BUCKET}/x",
        "report": str(report),
    }
    message = fail(etcd_snapshot, also={"check": False}, **(arguments | store.options | changed))
    assert said in message
    assert SECRET_KEY not in message
    assert said in report.read_text()
    assert not store.path("x").exists()


def test_unwritable_file_is_reported(newest: Cluster) -> None:
    message = fail(etcd_snapshot, endpoints=newest.endpoints, dest="/dev/full/x", also={"check": False})
    assert "can't be written" in message


def test_full_disk_is_reported(newest: Cluster, tmp_path: Path) -> None:
    # The file that is written is a device that is always full.
    (tmp_path / ".x.db.unfinished").symlink_to("/dev/full")
    message = fail(etcd_snapshot, endpoints=newest.endpoints, dest=str(tmp_path / "x.db"), also={"check": False})
    assert "there is no room left" in message
    assert _names(tmp_path) == []


def _damaged(path: Path, how: str) -> None:
    content = bytearray(path.read_bytes())
    if how == "cut":
        content = content[: len(content) // 2]
    elif how == "cut by whole pages":
        content = content[: -4096 * 3 - 32] + content[-32:]
    else:
        content[len(content) // 2] ^= 4
    path.write_bytes(content)


@pytest.mark.parametrize("how", ["cut", "cut by whole pages", "a bit flipped"])
def test_damaged_snapshot_is_refused(newest: Cluster, tmp_path: Path, how: str) -> None:
    saved = _save(newest, tmp_path / "x.db")
    _damaged(tmp_path / "x.db", how)
    etcdutl = _etcdutl(newest.version)
    message = fail(etcd_snapshot_info, src=str(tmp_path / "x.db"), etcdutl=etcdutl)
    assert "damaged" in message or "truncated" in message
    member: dict[str, Any] = {
        "name": "m0",
        "peer_urls": ["http://a:1"],
        "initial_cluster": {"m0": "http://a:1"},
        "token": "t",
    }
    data = tmp_path / "data"
    fail(etcd_restore, src=str(tmp_path / "x.db"), data_dir=str(data), etcdutl=etcdutl, **member)
    assert not data.exists()
    good = _save(newest, tmp_path / "y.db")
    assert "is not what was stored" in fail(
        etcd_snapshot_info, src=str(tmp_path / "y.db"), sha256=saved["sha256"][::-1], etcdutl=etcdutl
    )
    assert good["sha256"] != ""


def test_restored_members_have_the_keys_and_a_new_cluster_id(one: Cluster, tmp_path: Path) -> None:
    client = one.client()
    client.put("precious", "thing")
    saved = _save(one, tmp_path / "x.db")
    restored = Cluster(one.version, tmp_path / "restored")
    restored.folder.mkdir()
    try:
        for name in ("m0", "m1", "m2"):
            restored.prepare(name)
        initial = {member.name: member.peer_url for member in restored.members}
        for member in restored.members:
            arguments: dict[str, Any] = {
                "src": str(tmp_path / "x.db"),
                "data_dir": str(restored.folder / member.name),
                "name": member.name,
                "peer_urls": [member.peer_url],
                "initial_cluster": initial,
                "token": "another",
                "etcdutl": _etcdutl(one.version),
            }
            assert run(etcd_restore, check=True, **arguments)["changed"]
            assert [succeed(etcd_restore, **arguments)["changed"] for _ in range(2)] == [True, False]
            restored.start(member, state="existing")
        eventually(healthy(restored.client()))
        assert restored.client().get("precious") == b"thing"
        assert restored.client().members().cluster_id != client.members().cluster_id
        assert restored.client().status().revision >= saved["revision"] + 1_000_000_000
    finally:
        restored.end()


def test_old_data_is_moved_away_once_and_put_back(newest: Cluster, tmp_path: Path) -> None:
    _save(newest, tmp_path / "x.db")
    data, old, plain = tmp_path / "data", tmp_path / "old", tmp_path / "plain.db"
    data.mkdir()
    (data / "precious").touch()
    prepare: dict[str, Any] = {
        "src": str(tmp_path / "x.db"),
        "data_dir": str(data),
        "old_data": str(old),
        "snapshot": str(plain),
    }
    for _ in range(2):  # a second try finds what the first one has left
        assert succeed(etcd_restore, **prepare)["changed"]
        assert (old / "precious").exists()
        assert not data.exists()
        data.mkdir()
        (data / "half").touch()
    assert plain.read_bytes() == (tmp_path / "x.db").read_bytes()
    back: dict[str, Any] = {"data_dir": str(data), "old_data": str(old), "state": "put_back"}
    assert [succeed(etcd_restore, **back)["changed"] for _ in range(2)] == [True, False]
    assert _names(data) == ["precious"]

    succeed(etcd_restore, **prepare)
    data.mkdir()
    keep: dict[str, Any] = {"data_dir": str(data), "old_data": str(old), "state": "kept"}
    assert [succeed(etcd_restore, **keep)["changed"] for _ in range(2)] == [True, False]
    assert data.exists()
    assert not old.exists()


def test_leftover_data_is_overwritten_when_allowed(newest: Cluster, tmp_path: Path) -> None:
    _save(newest, tmp_path / "x.db")
    volume = tmp_path / "volume"
    (volume / "data" / "half").mkdir(parents=True)
    arguments: dict[str, Any] = {
        "src": str(tmp_path / "x.db"),
        "data_dir": str(volume / "data"),
        "snapshot": str(tmp_path / "plain.db"),
    }
    assert not succeed(etcd_restore, **arguments)["changed"]
    assert _names(volume / "data") == ["half"]
    assert run(etcd_restore, check=True, overwrite=True, **arguments)["changed"]
    assert succeed(etcd_restore, overwrite=True, **arguments)["changed"]
    assert _names(volume) == []
    assert succeed(etcd_restore, overwrite=True, **arguments)["changed"]
    assert _names(volume) == []  # on a new volume nothing is left but the data that is made next


def test_nothing_is_put_back_where_no_data_was(newest: Cluster, tmp_path: Path) -> None:
    _save(newest, tmp_path / "x.db")
    data, old = tmp_path / "data", tmp_path / "old"
    succeed(
        etcd_restore,
        src=str(tmp_path / "x.db"),
        data_dir=str(data),
        old_data=str(old),
        snapshot=str(tmp_path / "plain.db"),
    )
    data.mkdir()
    succeed(etcd_restore, data_dir=str(data), old_data=str(old), state="put_back")
    assert not data.exists()
    assert not old.exists()


def test_full_disk_of_the_copy_is_not_reported_as_the_destination() -> None:
    class Full:
        name = "/scratch/snapshot.db"

        def write(self, _: object) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(StoreError, match=r"the copy that is checked, /scratch/snapshot.db, can't be written: No space"):
        etcd_snapshot._Tee(io.BytesIO(b"x"), Full()).read()

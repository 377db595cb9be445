"""Evidence of loss from real members: what Kubernetes keeps of their logs when they end."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.loss import is_cut_off, loss, reason_in
from ansible_collections.etcdops.etcd.plugins.module_utils.cluster.observation import Claim, NodeState, Pod

from ...etcds import Certificates, Cluster, Member, eventually

PAGE = 4096
POD = Pod("e-0", "uid", None, False, False, datetime(2026, 1, 1, tzinfo=UTC), "hash", "", crashed=True)


def _loss_of(log_tail: str, restarts: int = 0) -> str:
    return loss(replace(POD, log_tail=log_tail, restarts=restarts), None, others_healthy=True)


def _log_tail(cluster: Cluster, member: Member, *, state: str = "new", stop: int = 0) -> tuple[int, str]:
    """Start a member that ends; its exit code and the end of its log, as observe has it.

    The kubelet keeps 2048 bytes and 80 lines. The rest is read if the reason is cut off.
    """
    log = cluster.folder / f"{member.name}.log"
    log.unlink(missing_ok=True)
    cluster.start(member, state=state)
    assert member.process
    if stop:
        eventually(lambda: cluster.client(member).status().leader_id)
        member.process.send_signal(stop)
    code = member.process.wait(timeout=30)
    member.process = None
    tail = "\n".join(log.read_bytes()[-2048:].decode(errors="replace").splitlines()[-80:])
    whole = "\n".join(log.read_text(errors="replace").splitlines()[-60:])
    return code, reason_in(whole) or tail if is_cut_off(tail) else tail


def _stopped(cluster: Cluster) -> tuple[Member, Path]:
    """A member with some data, stopped, and its data directory."""
    client, member = cluster.client(), cluster.members[0]
    for number in range(300):
        client.put(f"key-{number}", "x" * 500)
    client.close()
    member.kill()
    return member, cluster.folder / member.name / "member"


def _log_of(data: Path) -> Path:
    return max(data.glob("wal/*.wal"))


def _flip_log(data: Path) -> None:
    content = bytearray(_log_of(data).read_bytes())
    middle = len(content.rstrip(b"\0")) // 2
    for at in range(middle, middle + 8):
        content[at] ^= 0xFF
    _log_of(data).write_bytes(content)


def _empty_log(data: Path) -> None:
    _log_of(data).write_bytes(b"")


def _zero_log(data: Path) -> None:
    _log_of(data).write_bytes(b"\0" * 64 * 1024)


def _flip_first_pages(data: Path) -> None:
    _overwrite(data, 0, 4 * PAGE)


def _zero_all_but_the_first_pages(data: Path) -> None:
    _overwrite(data, 2 * PAGE, None)


def _overwrite(data: Path, start: int, end: int | None) -> None:
    content = bytearray((data / "snap/db").read_bytes())
    end = end or len(content)
    content[start:end] = b"\0" * (end - start) if start else bytes(byte ^ 0xFF for byte in content[start:end])
    (data / "snap/db").write_bytes(content)


# What is said of each, and after how many crashes.
DAMAGES: dict[Callable[[Path], None], tuple[str, int]] = {
    _flip_log: ("its data is damaged", 2),
    _empty_log: ("etcd crashed 2 times", 2),
    _zero_log: ("etcd crashed 2 times", 2),
    _flip_first_pages: ("its data is damaged", 2),
    _zero_all_but_the_first_pages: ("etcd crashed 2 times", 2),
}


def test_damaged_data_is_loss(own: Cluster) -> None:
    """Never at the first crash."""
    member, data = _stopped(own)
    whole = shutil.copytree(data, own.folder / "whole")
    for damage, (meaning, crashes) in DAMAGES.items():
        shutil.rmtree(data)
        shutil.copytree(whole, data)
        damage(data)
        code, tail = _log_tail(own, member)
        assert code
        assert _loss_of(tail, restarts=crashes - 1).startswith(meaning), (damage, tail)
        assert _loss_of(tail, restarts=crashes - 2) == "", (damage, tail)
        assert loss(replace(POD, log_tail=tail, out_of_memory=True), None, others_healthy=True) == ""
        assert loss(replace(POD, log_tail=tail, crashed=False), None, others_healthy=True) == ""  # it runs again


def test_log_that_ends_too_early_is_loss() -> None:
    """etcd notices it when the leader's commit index is beyond its log."""
    said = "tocommit(9) is out of range [lastIndex(5)]. Was the raft log corrupted, truncated, or lost?"
    line = f'{{"level":"panic","ts":"2026-11-18T17:31:45Z","logger":"raft","msg":"{said}"}}'
    assert (_loss_of(line), _loss_of(line, restarts=1)) == ("", "its data is damaged")


def test_files_that_may_not_be_opened_are_no_loss(own: Cluster) -> None:
    """Their data is as good as before."""
    member, data = _stopped(own)
    log = _log_of(data)
    subprocess.run(["chattr", "+i", str(log)], check=True)
    try:
        code, tail = _log_tail(own, member)
    finally:
        subprocess.run(["chattr", "-i", str(log)], check=True)
    assert code
    assert "operation not permitted" in tail
    assert _loss_of(tail, restarts=20) == ""


def test_full_volume_is_no_loss(own: Cluster, tmp_path: Path) -> None:
    """etcd panics when it can't create its log, and only the stack is left of the reason."""
    member, data = _stopped(own)
    shutil.rmtree(data.parent)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(tmp_path)], check=True)
    try:
        data.parent.symlink_to(tmp_path)
        code, tail = _log_tail(own, member)
    finally:
        data.parent.unlink(missing_ok=True)
        subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)
    assert code
    assert _loss_of(tail, restarts=4) == "", tail


def test_words_of_damage_count_only_as_the_reason_of_etcd() -> None:
    """Anything else in a log may contain them: a key, a path, a warning about another member."""
    for line in (
        '{"level":"warn","msg":"crc mismatch","key":"wal: failed to read WAL"}',
        '{"level":"warn","msg":"peer","error":"walpb: crc mismatch"}',
        '{"level":"fatal","msg":"discovery failed","error":"open /data/walpb: x/0.wal: permission denied"}',
        '{"level":"fatal","msg":"failed to open WAL","error":"read 0.wal: input/output error"}',
        '{"level":"info","msg":"cannot fetch cluster info from peer urls"}',
    ):
        assert _loss_of(line, restarts=4) == "", line
    assert _loss_of('{"level":"fatal","msg":"x","error":"wal: crc mismatch"}', restarts=1) == "its data is damaged"
    assert _loss_of('cannot fetch cluster info from peer urls","stacktrace":"…"}') == "its data is gone"


def test_missing_data_is_loss_with_a_sealed_configuration(own: Cluster) -> None:
    member = own.members[0]
    member.kill()
    shutil.rmtree(own.folder / member.name)
    code, tail = _log_tail(own, member, state="existing")
    assert code
    assert _loss_of(tail) == "its data is gone"


def test_removed_member_does_not_come_back(own_three: Cluster) -> None:
    removed = own_three.members[2]
    member_id = own_three.client(removed).status().member_id
    removed.kill()
    eventually(lambda: own_three.client().member_remove(member_id))
    # 3.5 may also end because it can't tell the others that it has started; Kubernetes starts it again then.
    endings = (_log_tail(own_three, removed)[1] for _ in range(5))
    assert "it was removed from the cluster" in map(_loss_of, endings)


def test_other_exits_are_no_loss(own: Cluster) -> None:
    member = own.members[0]
    member.kill()
    _, tail = _log_tail(own, member, stop=signal.SIGTERM)
    assert _loss_of(tail, restarts=1) == ""

    with socket.create_server(("127.0.0.1", int(member.peer_url.rpartition(":")[2]))):
        code, tail = _log_tail(own, member)
    assert code
    assert "address already in use" in tail
    assert _loss_of(tail, restarts=1) == ""

    plain, own.certificates = member.client_url, Certificates(own.folder / "nothing-here")
    member.client_url = plain.replace("http:", "https:")
    code, tail = _log_tail(own, member)
    assert code
    assert _loss_of(tail, restarts=1) == ""

    member.client_url, own.certificates = plain, None
    code, tail = _log_tail(own, member, state="no-such-state")
    assert code
    assert _loss_of(tail, restarts=1) == ""


def test_unexplained_crashes_are_loss_only_while_others_are_healthy() -> None:
    assert _loss_of("", restarts=4) == ""
    assert _loss_of("", restarts=5).startswith("etcd crashed 6 times")
    assert loss(replace(POD, restarts=5), None, others_healthy=False) == ""  # the settings may be the cause


def test_member_is_lost_with_the_only_nodes_of_its_volume() -> None:
    claim, running = Claim("data-e-0", "uid-1", stranded=True), replace(POD, crashed=False)
    assert loss(None, claim, others_healthy=True) == ""
    assert loss(replace(running, node=NodeState.GONE), claim, others_healthy=True) == ""  # Kubernetes still waits
    floating = replace(claim, stranded=False)
    for homeless in (replace(running, scheduled=False), replace(running, deleting=True, node=NodeState.GONE)):
        assert loss(homeless, claim, others_healthy=False) == "the node of its volume is gone"
        assert loss(homeless, floating, others_healthy=False) == ""  # another node gets the volume


def test_member_is_lost_with_its_node() -> None:
    claim, running = Claim("data-e-0", "uid-1"), replace(POD, crashed=False)
    for node, data, lost in (
        (NodeState.UNREACHABLE, claim, True),
        (NodeState.GONE, claim, False),
        (NodeState.GONE, None, True),  # in memory
        (NodeState.READY, claim, False),
        (NodeState.UNKNOWN, claim, False),
    ):
        assert loss(replace(running, node=node), data, others_healthy=True) == ""  # Kubernetes still waits for it
        assert bool(loss(replace(running, node=node, deleting=True), data, others_healthy=False)) == lost
    unseen = replace(
        running, deleting=True, overdue=True
    )  # installed for one namespace: no permission to look at nodes
    assert "should have stopped long ago" in loss(unseen, claim, others_healthy=False)
    assert loss(replace(unseen, node=NodeState.READY), claim, others_healthy=False) == ""

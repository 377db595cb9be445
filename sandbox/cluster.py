"""Start and remove the sandbox, and report its state."""

from __future__ import annotations

import json
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from . import cgroups, checks, configs, host, layout, network, parts, pki
from .errors import SandboxError
from .images import preloaded
from .init import Spec
from .layout import Host
from .run import locked, run, say, wait_for

# The kubelet sets these for the whole machine; `down` resets them.
KUBELET_SYSCTLS = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)


@dataclass(frozen=True)
class Record:
    """What `up` did, for `down` and the fault commands."""

    nodes: int
    sysctls: dict[str, str]
    archives: list[str]  # the images that are loaded into a node when it is powered on
    made: list[str] = field(default_factory=list)  # empty folders of the machine, over which hosts mount their own

    def save(self) -> None:
        """At once, because others may be reading it."""
        new = layout.STATE / f"record.{os.getpid()}"
        new.write_text(json.dumps(asdict(self)))
        new.replace(layout.STATE / "record.json")


def record(state: Path = layout.STATE) -> Record | None:
    """The record of a sandbox, complete or not; None without one."""
    try:
        return Record(**json.loads((state / "record.json").read_text()))
    except FileNotFoundError:
        return None


def prepare() -> None:
    """Install and build what `up` needs and the cache keeps: packages, programs, images."""
    checks.packages()
    parts.build_all()
    preloaded.archives()


def up(count: int) -> None:
    """Start a sandbox with `count` nodes, unless it is already running."""
    if not layout.MIN_NODES <= count <= layout.MAX_NODES:
        raise SandboxError(f"A sandbox has {layout.MIN_NODES} to {layout.MAX_NODES} nodes, not {count}.")
    checks.root()
    checks.kernel()
    checks.disk()
    with locked(layout.lock()):
        if there := record():
            if there.nodes == count and all(host_state(each) == "running" for each in layout.hosts(count)):
                say(f"the sandbox is up already, with {count} nodes")
                return
            say("removing the existing sandbox")
            _remove()
        checks.packages()  # the next check needs one of them
        checks.network()
        prepare()
        try:
            _start(count)
        except BaseException:
            _remove()
            raise
    say(f"the sandbox is up; to use it: {how_to_use()}")


def down() -> None:
    """Remove the sandbox and everything it created, except the cache."""
    checks.root()
    with locked(layout.lock()):
        _remove()
    say("the sandbox is down")


def _start(count: int) -> None:
    say(f"starting a control plane and {count} nodes")
    layout.STATE.mkdir(mode=0o755)
    sysctls = _sysctls()
    archives = [str(path) for path in preloaded.archives()]
    Record(count, sysctls, archives, _made()).save()
    for path in layout.PRIVATE:
        path.mkdir(exist_ok=True)
    _write_credentials(count)
    (layout.STATE / "bin").mkdir()
    (layout.STATE / "bin/kubectl").symlink_to(parts.binary("kubernetes", "kubectl"))
    resolv_conf = layout.STATE / "resolv.conf"
    resolv_conf.write_text(f"nameserver {layout.DNS_ADDRESS}\n")
    switch = Spec(layout.SWITCH, [], str(layout.STATE / "logs" / layout.SWITCH), str(resolv_conf))
    host.start(switch, lambda pid: network.wire_switch(pid, layout.nodes(count)))
    with ThreadPoolExecutor() as pool:
        starts = [pool.submit(start_host, each, count=count, archives=archives) for each in layout.hosts(count)]

        def api_is_ready() -> bool:
            for start in starts:
                if start.done():
                    start.result()  # raises if the host could not be started
            return _api_is_ready()

        wait_for("the API server to be ready", api_is_ready, timeout=120)
        say("the API server is ready")
        objects = configs.cluster_objects(layout.control_plane())
        kubectl("apply", "--server-side", "--filename=-", stdin=json.dumps(objects))
        for start in starts:
            start.result()
        wait_for("every node to be Ready", lambda: ready_nodes() == count, timeout=120)


def _sysctls() -> dict[str, str]:
    """The machine's settings before the first sandbox changed them."""
    if other := _other():
        return other.sysctls
    return {name: Path("/proc/sys", name).read_text().strip() for name in KUBELET_SYSCTLS}


def _made() -> list[str]:
    """The folders that did not exist before the first sandbox."""
    if other := _other():
        return other.made
    return [str(path) for path in layout.PRIVATE if not path.exists()]


def _other() -> Record | None:
    """The record of the other sandbox, if it is up."""
    others = (layout.state(number) for number in layout.NUMBERS if number != layout.NUMBER)
    return next((found for state in others if (found := record(state))), None)


def start_host(each: Host, *, count: int, archives: list[str]) -> None:
    """Start the control plane or a node; also powers a node on again."""
    _write_configs(each)
    programs = (
        configs.node_programs(each, _programs())
        if each.is_node
        else configs.control_plane_programs(each, _programs(), sys.executable)
    )
    spec = Spec(each.name, programs, str(each.logs), str(layout.STATE / "resolv.conf"))
    host.start(spec, lambda pid: network.wire_host(pid, each, layout.nodes(count)))
    if each.is_node:
        load(each, archives)
        host.inside(each.name, "touch", configs.IMAGES_LOADED)


def load(node: Host, archives: list[str]) -> None:
    """Import images into a node."""
    for archive in archives:
        wait_for(
            f"containerd of {node.name}",
            lambda: _succeeds(node.name, "ctr", "--connect-timeout=1s", "version"),
            timeout=60,
        )
        host.inside(node.name, "ctr", "--namespace=k8s.io", "images", "import", archive, timeout=300)


def load_everywhere(archive: Path) -> None:
    """Import an image into every running node, and record it for nodes that are powered on later."""
    with locked(layout.lock()):
        there = existing()
        archives = [path for path in there.archives if path != str(archive)]
        replace(there, archives=[*archives, str(archive)]).save()
    running = [node for node in layout.nodes(there.nodes) if host.find(node.name)]
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda node: load(node, [str(archive)]), running))


def existing() -> Record:
    there = record()
    if there is None:
        raise SandboxError("There is no sandbox. Start one first (make sandbox-up).")
    return there


def kubectl(*arguments: str, stdin: str | None = None) -> str:
    """kubectl as the sandbox's administrator."""
    program = parts.binary("kubernetes", "kubectl")
    return run([program, f"--kubeconfig={layout.kubeconfig()}", *arguments], stdin=stdin)


def ready_nodes() -> int:
    """The number of Ready nodes."""
    try:
        nodes = json.loads(kubectl("get", "nodes", "--output=json"))["items"]
    except SandboxError:
        return 0
    return sum(node_is_ready(node) for node in nodes)


def node_is_ready(node: dict[str, dict[str, list[dict[str, str]]]]) -> bool:
    return any(c["type"] == "Ready" and c["status"] == "True" for c in node["status"].get("conditions", []))


def status() -> str:
    """A table of the hosts, and the output of `kubectl get nodes`."""
    there = existing()
    lines = [f"{'HOST':<15}{'ADDRESS':<15}{'STATE':<10}"]
    lines += [f"{each.name:<15}{each.address!s:<15}{host_state(each):<10}" for each in layout.hosts(there.nodes)]
    try:
        lines += ["", kubectl("get", "nodes", "--label-columns=topology.kubernetes.io/zone").rstrip()]
    except SandboxError as error:
        lines += ["", f"The API server does not answer: {error}"]
    return "\n".join([*lines, "", f"to use it: {how_to_use()}", f"logs:      {layout.STATE}/logs"])


def how_to_use() -> str:
    """The command that configures kubectl for the sandbox."""
    return f"export KUBECONFIG={layout.kubeconfig()} PATH={layout.STATE}/bin:$PATH"


def host_state(each: Host) -> str:
    if host.find(each.name) is None:
        return "off"
    if cgroups.is_frozen(each.name):
        return "frozen"
    return "cut" if network.is_cut(each.name) else "running"


def _succeeds(name: str, *argv: str) -> bool:
    try:
        host.inside(name, *argv)
    except SandboxError:
        return False
    return True


def _api_is_ready() -> bool:
    try:
        return kubectl("get", "--raw=/readyz", "--request-timeout=2s") == "ok"
    except SandboxError:
        return False


def _programs() -> dict[str, str]:
    kubernetes = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet")
    return {
        **{name: str(parts.binary("kubernetes", name)) for name in kubernetes},
        "coredns": str(parts.binary("coredns", "coredns")),
        "etcd": str(parts.etcd_binary("3.6.16")),
        "containerd": "/usr/bin/containerd",
    }


def _write_credentials(count: int) -> None:
    folder = layout.STATE / "pki"
    folder.mkdir(mode=0o700)
    ca = pki.make_ca("sandbox")
    ca.write(folder / "ca")
    control_plane = layout.control_plane()
    server_names = (
        str(control_plane.address),
        str(layout.KUBERNETES_SERVICE_ADDRESS),
        "127.0.0.1",
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        f"kubernetes.default.svc.{layout.CLUSTER_DOMAIN}",
    )
    pki.make_leaf(ca, "kube-apiserver", names=server_names).write(folder / "apiserver")
    kubelet_client = pki.make_leaf(ca, "kube-apiserver-kubelet-client", groups=("system:masters",))
    kubelet_client.write(folder / "apiserver-kubelet-client")
    pki.make_leaf(ca, "service-accounts").write(folder / "service-account")

    def write_kubeconfig(path: Path, user: pki.Pair) -> None:
        path.touch(mode=0o600)
        path.write_text(pki.kubeconfig(layout.api_url(), ca, user))

    write_kubeconfig(layout.kubeconfig(), pki.make_leaf(ca, "sandbox-admin", groups=("system:masters",)))
    for name in ("controller-manager", "scheduler"):
        write_kubeconfig(folder / f"{name}.kubeconfig", pki.make_leaf(ca, f"system:kube-{name}"))
    write_kubeconfig(folder / "kube-proxy.kubeconfig", pki.make_leaf(ca, "system:kube-proxy"))
    for node in layout.nodes(count):
        node.dir.mkdir(parents=True)
        names = (node.name, str(node.address))
        leaf = pki.make_leaf(ca, f"system:node:{node.name}", groups=("system:nodes",), names=names)
        leaf.write(node.dir / "kubelet")
        write_kubeconfig(node.dir / "kubelet.kubeconfig", leaf)


def _write_configs(each: Host) -> None:
    each.dir.mkdir(parents=True, exist_ok=True)
    (each.dir / "kube-proxy.json").write_text(configs.dump(configs.kube_proxy_config(each)))
    if not each.is_node:
        (each.dir / "Corefile").write_text(configs.corefile(each))
        (each.dir / "audit-policy.json").write_text(configs.dump(configs.audit_policy()))
        return
    (each.dir / "resolv.conf").write_text(f"nameserver {layout.DNS_ADDRESS}\n")
    (each.dir / "kubelet.json").write_text(configs.dump(configs.kubelet_config(each)))
    (each.dir / "containerd.toml").write_text(configs.containerd_config(each))
    (each.dir / "cni").mkdir(exist_ok=True)
    (each.dir / "cni" / "pods.conflist").write_text(configs.dump(configs.cni_config(each)))


def _remove() -> None:
    """Stop every host and remove everything; also works on an incomplete sandbox."""
    there = record()
    if there is None and not layout.STATE.exists():
        return
    folder = layout.STATE / "hosts"
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    with ThreadPoolExecutor() as pool:
        list(pool.map(host.stop, names))
    # The machine's end of the veth pair disappears with the switch, a moment after its last process.
    wait_for(f"{layout.UPLINK} to disappear", lambda: not Path("/sys/class/net", layout.UPLINK).exists(), timeout=30)
    cgroups.remove()
    if there is not None and _other() is None:
        for name, value in there.sysctls.items():
            Path("/proc/sys", name).write_text(value)
        for path in there.made:
            with suppress(OSError):  # something else uses it by now
                Path(path).rmdir()
    shutil.rmtree(layout.STATE)

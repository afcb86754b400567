"""A real slurmctld, slurmrestd and slurmd as plain processes, for contract tests.

Each daemon runs in its own mount, PID, IPC and UTS namespace over the Slurm tree of the lab
(`python -m lab.rootfs`), with the network of the host and its own ports on the loopback address. Root only.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

SLURM, NOBODY = 401, 65534

_ENTER = """
set -e
mount --make-rprivate /
mkdir -p "$SCRATCH/upper" "$SCRATCH/work" "$SCRATCH/root"
mount -t overlay overlay -o "lowerdir=$TREE,upperdir=$SCRATCH/upper,workdir=$SCRATCH/work" "$SCRATCH/root"
cd "$SCRATCH/root"
mount --rbind /dev dev
mount -t proc proc proc
mount --rbind /sys sys
mount -t tmpfs tmpfs tmp
chmod 1777 tmp
mount --bind "$STATE/run" run
mount --bind "$STATE/spool" var/spool/slurmctld
mount --bind "$STATE/log" var/log/slurm
mount --bind "$STATE/etc" etc/slurm
echo "127.0.0.1 localhost $NAME" >etc/hosts
hostname "$NAME"
exec chroot . /usr/bin/env -i PATH=/usr/sbin:/usr/bin "$@"
"""

_CONF = """\
ClusterName=contract
SlurmUser=slurm
SlurmctldHost=ctl(127.0.0.1)
SlurmctldPort={ctld}
SlurmdPort={slurmd}
SlurmdUser=root
StateSaveLocation=/var/spool/slurmctld
SlurmdSpoolDir=/var/spool/slurmd
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
SlurmctldPidFile=/run/slurmctld/slurmctld.pid
MaxNodeCount=16384
MetricsType=metrics/openmetrics
MessageTimeout=2
CommunicationParameters=NoCtldInAddrAny
AuthType=auth/slurm
CredType=cred/slurm
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt.key
AuthInfo=use_client_ids
AccountingStorageType=accounting_storage/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
SuspendTime=INFINITE
PartitionName=main Nodes=ALL Default=YES MaxTime=UNLIMITED State=UP
"""


def tree() -> Path:
    """The root file system with all of Slurm that the lab makes."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "coil/slurm-tree/current"


def missing() -> str:
    """Why the daemons cannot run here, or an empty text."""
    if os.geteuid() != 0:
        return "real Slurm daemons need root"
    return "" if (tree() / "usr/sbin/slurmrestd").exists() else "no Slurm tree: run python -m lab.rootfs"


def wait_until(condition: Callable[[], bool], within: float, what: str) -> None:
    """Ask until the condition holds; fail with `what` after that many seconds."""
    deadline = time.monotonic() + within
    while not condition():
        assert time.monotonic() < deadline, f"not within {within:g} s: {what}"
        time.sleep(0.02)


class Daemon:
    """One process in its namespaces."""

    def __init__(self, cluster: SlurmCluster, name: str, *command: str) -> None:
        self._scratch = cluster.state / f"scratch-{name}-{secrets.token_hex(4)}"
        self._scratch.mkdir()
        self._log = (cluster.state / f"{name}.out").open("ab")
        self._process = cluster.enter(name, self._scratch, *command, output=self._log)

    @property
    def running(self) -> bool:
        """Whether the process has not ended."""
        return self._process.poll() is None

    def send(self, number: int) -> None:
        """Send a signal to the daemon itself, not to the program that holds its namespaces."""
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text()
        for child in children.split():
            os.kill(int(child), number)

    def ended(self, within: float = 20) -> None:
        """Wait until the process has ended by itself."""
        self._process.wait(timeout=within)
        self._log.close()

    def stop(self, number: int = signal.SIGKILL) -> None:
        """End the process and wait until it has; slurmrestd as process 1 ignores gentler signals."""
        self.send(number)
        self._process.wait(timeout=15)
        self._log.close()


class SlurmCluster:
    """slurmctld and slurmrestd of one cluster, and slurmds when asked for."""

    def __init__(self, state: Path, extra_conf: str = "") -> None:
        self.state = state
        self._extra_conf = extra_conf
        self.ports = dict(zip(("ctld", "rest", "slurmd"), free_ports(3), strict=True))
        self.jwt_key = secrets.token_bytes(32)
        self.ctld: Daemon | None = None
        self.rest: Daemon | None = None
        self.workers: list[Daemon] = []
        self._prepare()

    @property
    def base_url(self) -> str:
        """Where slurmrestd listens."""
        return f"http://127.0.0.1:{self.ports['rest']}"

    def start_ctld(self) -> None:
        """Start slurmctld and wait until it answers."""
        self.ctld = Daemon(self, "ctl", *as_user(SLURM), "slurmctld", "-D")
        ready = f"http://127.0.0.1:{self.ports['ctld']}/readyz"
        wait_until(lambda: answers(ready), 20, f"slurmctld ready; see {self.state}")

    def start_rest(self, *arguments: str) -> None:
        """Start slurmrestd as the chart does (spec: control-plane 7.2) and wait until it listens."""
        settings = ("SLURM_JWT=daemon", "SLURMRESTD_SECURITY=disable_unshare_files,disable_unshare_sysv")
        address = f"127.0.0.1:{self.ports['rest']}"
        self.rest = Daemon(self, "rest", *settings, *as_user(NOBODY), "slurmrestd", *arguments, address)
        wait_until(lambda: listens(self.ports["rest"]), 20, f"slurmrestd listens; see {self.state}")

    def start_worker(self, name: str) -> None:
        """Start a dynamic slurmd and wait until it has registered; one per cluster, for its port."""
        daemon = Daemon(self, name, "slurmd", "-D", "-Z", "-N", name, "--conf", "RealMemory=1000 CPUs=2")
        self.workers.append(daemon)
        wait_until(lambda: f"NodeName={name} " in self.run("scontrol", "-o", "show", "node"), 20, name)

    def run(self, *command: str) -> str:
        """Run a Slurm command as root beside slurmctld; its errors are printed, not raised."""
        scratch = Path(tempfile.mkdtemp(dir=self.state))
        process = self.enter("ctl", scratch, *command, output=subprocess.PIPE)
        output, _ = process.communicate(timeout=30)
        return output.decode()

    def create_nodes(self, names: str) -> None:
        """Create cloud node records; `names` is a hostlist."""
        output = self.run("scontrol", "create", f"nodename={names}", "state=cloud")
        assert not output.strip(), output

    def node_line(self, name: str) -> str:
        """What `scontrol show node` says in one line."""
        return self.run("scontrol", "-o", "show", "node", name)

    def stop(self) -> None:
        """End everything."""
        for daemon in (self.rest, *self.workers, self.ctld):
            if daemon is not None and daemon.running:
                daemon.stop()

    def enter(self, name: str, scratch: Path, *command: str, output: object) -> subprocess.Popen[bytes]:
        """Run a command over the tree in namespaces of its own."""
        environment = {
            "PATH": os.environ["PATH"],
            "TREE": str(tree().resolve()),
            "STATE": str(self.state),
            "SCRATCH": str(scratch),
            "NAME": name,
        }
        return subprocess.Popen(
            [
                *("unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child"),
                *("sh", "-c", _ENTER, "sh", *command),
            ],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,  # pyright: ignore[reportArgumentType]
            stderr=subprocess.STDOUT,
        )

    def _prepare(self) -> None:
        for folder in ("etc", "spool", "log", "run/slurmctld"):
            path = self.state / folder
            path.mkdir(parents=True)
            os.chown(path, SLURM, SLURM)
        etc = self.state / "etc"
        (etc / "slurm.conf").write_text(_CONF.format(**self.ports) + self._extra_conf)
        (etc / "cgroup.conf").write_text("CgroupPlugin=disabled\n")
        for name, key in (("slurm.key", secrets.token_bytes(128)), ("jwt.key", self.jwt_key)):
            (etc / name).write_bytes(key)
            (etc / name).chmod(0o600)
            os.chown(etc / name, SLURM, SLURM)


@contextlib.contextmanager
def slurm_cluster(extra_conf: str = "") -> Iterator[SlurmCluster]:
    """A running cluster without nodes, with these lines added to slurm.conf; it is gone afterwards."""
    state = Path(tempfile.mkdtemp(prefix="coil-slurm-"))
    state.chmod(0o755)
    cluster = SlurmCluster(state, extra_conf)
    try:
        cluster.start_ctld()
        cluster.start_rest()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(state, ignore_errors=True)


def as_user(uid: int) -> tuple[str, ...]:
    """The words before a command that runs as this user and group."""
    return ("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups")


def slurm_jwks(default: str, **keys: bytes) -> str:
    """A slurm.jwks with these keys; the default one is the one that is signed with."""
    found = [
        {
            "alg": "HS256",
            "kty": "oct",
            "kid": kid,
            "k": base64.b64encode(key).decode(),
            **({"use": "default"} if kid == default else {}),
        }
        for kid, key in keys.items()
    ]
    return json.dumps({"keys": found})


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for opened in sockets:
            opened.bind(("127.0.0.1", 0))
        return [opened.getsockname()[1] for opened in sockets]


def listens(port: int) -> bool:
    """Whether somebody accepts connections on a loopback port."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def answers(url: str) -> bool:
    """Whether a GET gives success."""
    try:
        with urllib.request.urlopen(url, timeout=1) as answer:  # noqa: S310 -- a loopback address of ours
            return 200 <= answer.status < 300
    except OSError:
        return False

"""The built images with real Slurm daemons, as the pods run them (spec: images 7.2, 7.4)."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Generator
from pathlib import Path

import pytest

from lab import images, sbom
from tests.support.container import Container, image_config, unpacked, write
from tests.support.image_cluster import KEY, Cluster, free_port, status

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.timeout(300),  # the first run builds what is missing
    pytest.mark.skipif(os.geteuid() != 0, reason="namespaces and mounts need root"),
]

SLURM = ("slurmctld", "slurmd", "slurmdbd", "slurmrestd", "sackd", "login")


def root_of(name: str) -> Path:
    if name == "login" and not images.archives(["login"]):
        pytest.skip("the login image is not built (python -m lab.images login)")
    return unpacked(images.build([name])[name])


def test_a_container_leaves_no_process_behind() -> None:
    """Whatever user it runs as."""
    with Container("slurmctld", "infinity", entrypoint=["sleep"]) as container:
        process = Path(f"/proc/{container.pid}")
        container.until(lambda: "sleep" in (process / "cmdline").read_text(), "the program runs")
    assert not process.exists()


# --- content -----------------------------------------------------------------------------------------


def materials(name: str) -> dict[str, str]:
    """What the image's bill of materials has, by name."""
    archive = images.build([name])[name]
    document = json.loads(sbom.path_of(archive).read_text())
    return {each["name"]: each["version"] for each in document["components"]}


def test_the_bill_of_materials_is_what_dpkg_and_pip_installed() -> None:
    listed = materials("slurmd")
    query = ["dpkg-query", f"--admindir={root_of('slurmd')}/var/lib/dpkg", "--show"]
    shown = subprocess.run(
        [*query, "--showformat=${Package} ${Version}\\n"], capture_output=True, text=True, check=True
    )
    assert listed == dict(line.split() for line in shown.stdout.splitlines())
    locked = re.findall(
        r"^([\w.-]+)==(\S+) \\$", (images.ROOT / "requirements/runtime.lock").read_text(), re.MULTILINE
    )
    operator = {name.lower().replace("_", "-"): version for name, version in materials("operator").items()}
    assert {name: operator.get(name) for name, _ in locked} == dict(locked)
    assert list(materials("tools")) == ["busybox-static"]


@pytest.mark.parametrize("name", SLURM)
def test_content(name: str) -> None:
    root = root_of(name)
    assert "slurm:x:401:401:" in (root / "etc/passwd").read_text()
    assert "slurm:x:401:" in (root / "etc/group").read_text()
    assert list((root / "etc/slurm").iterdir()) == []
    forbidden = ("usr/sbin/munged", "usr/lib/systemd/systemd", "usr/bin/dbus-daemon", "usr/sbin/policy-rc.d")
    assert [path for path in forbidden if (root / path).exists()] == []
    assert list((root / "etc/ssh").glob("ssh_host_*")) == []
    assert list((root / "usr/share/doc").glob("*")) == []
    assert list((root / "var/lib/apt/lists").glob("*")) == []
    assert list((root / "var/cache/install-packages").glob("*")) == []
    # The archive that the machine of the build used must not be named anywhere.
    assert list((root / "etc/apt").rglob("*.list")) == []


@pytest.mark.parametrize(
    ("name", "user", "port"),
    [
        ("slurmctld", "401:401", "6817/tcp"),
        ("slurmd", None, "6818/tcp"),
        ("slurmdbd", "401:401", "6819/tcp"),
        ("slurmrestd", "65534:65534", "6820/tcp"),
        ("sackd", "401:401", None),
        ("operator", "65532:65532", None),
        ("tools", None, None),
    ],
)
def test_configuration(name: str, user: str | None, port: str | None) -> None:
    config = image_config(name)
    assert config.get("User") == user
    assert port is None or port in config["ExposedPorts"]


def test_programs_that_sidecars_and_hooks_use() -> None:
    ctld, worker, tools = root_of("slurmctld"), root_of("slurmd"), root_of("tools")
    for name in ("tini", "bash", "find", "sha256sum", "sort", "scontrol"):
        assert (ctld / "usr/bin" / name).exists(), name
    for name in ("sh", "hostname", "scontrol"):
        assert (worker / "usr/bin" / name).exists(), name
    busybox = {path.name for path in (tools / "usr/bin").iterdir()}
    assert {"sh", "find", "xargs", "cp", "chown", "chmod", "ls", "mkfifo", "cat", "dirname"} <= busybox


def test_the_configuration_sidecars_tools_understand_its_options() -> None:
    script = (
        "mkdir -p /mnt/a /mnt/b && touch '/mnt/a/x y.conf' /mnt/a/z.key && "
        "find /mnt/a -name '*.conf' -print0 -o -name '*.key' -print0 | xargs -0 cp -t /mnt/b && ls /mnt/b"
    )
    with Container("tools", "/bin/sh", "-c", script) as container:
        assert container.wait(10) == 0, container.output()
        assert container.output().splitlines() == ["x y.conf", "z.key"]


# --- a cluster ---------------------------------------------------------------------------------------


@pytest.fixture
def cluster() -> Generator[Cluster]:
    made = Cluster()
    with made.controller:
        made.ready()
        yield made


def test_slurmctld_follows_reconfigures_and_saves_before_it_ends(cluster: Cluster) -> None:
    controller = cluster.controller
    assert status(cluster.port, "/livez") == 204
    assert status(cluster.port, "/metrics/nodes") == 200
    for count in (1, 2, 3):
        cluster.scontrol("reconfigure")
        controller.until(lambda c=count: controller.output().count("main process is now") == c, "followed")
    users = controller.run("ps", "-eo", "pid,user,args").stdout
    assert users.count("slurmctld --systemd") == 1
    assert " root " not in users.replace(" root     ps", "")
    controller.signal(signal.SIGTERM)
    assert controller.wait(15) == 0, controller.output()
    assert controller.output().count("Saving all slurm state") == 4


def test_a_worker_registers_runs_a_job_and_stops(cluster: Cluster) -> None:
    conf = ("--conf", "'Features=gpu Topology='\"$SLINKY_TOPOLOGY\"' Weight=7'")
    environ = {"SLINKY_TOPOLOGY": "default:s1", "POD_CPUS": "1", "POD_MEMORY": "500"}
    worker = cluster.worker("worker-0", *conf, environ=environ)
    with worker:
        worker.until(lambda: status(cluster.worker_port, "/readyz") == 204, "slurmd ready")
        node = cluster.scontrol("show", "node", "worker-0")
        for text in ("ActiveFeatures=gpu", "Topology=default:s1", "Weight=7", "MemSpecLimit=", "127.0.0.1"):
            assert text in node
        job = cluster.controller.run("srun", "--time=1", "hostname", user="401:401")
        assert job.stdout == "worker-0\n", job.stderr
        # As the preStop hook does.
        hook = "scontrol update nodename=$(hostname) state=down reason=stop"
        assert worker.run("/usr/bin/sh", "-c", hook).returncode == 0
        worker.signal(signal.SIGTERM)
        assert worker.wait(15) == 0, worker.output()
    assert "State=DOWN" in cluster.scontrol("show", "node", "worker-0")


def kept_from_jobs(cluster: Cluster, memory: int) -> int:
    """Start worker-0 with a limit and end it; the memory that Slurm kept from jobs meanwhile, MiB."""
    with cluster.worker("worker-0", environ={"POD_MEMORY": str(memory)}) as worker:
        worker.until(lambda: status(cluster.worker_port, "/readyz") == 204, "slurmd ready")
        found = re.search(r"MemSpecLimit=(\d+)", cluster.scontrol("show", "node", "worker-0"))
        worker.signal(signal.SIGTERM)
        assert worker.wait(15) == 0, worker.output()
    assert found is not None
    return int(found[1])


def test_a_record_keeps_its_limits_until_it_is_deleted(cluster: Cluster) -> None:
    """Field case REG-05: docs/nodeset.md has the remedy."""
    first = kept_from_jobs(cluster, 500)
    assert kept_from_jobs(cluster, 700) == first
    cluster.scontrol("delete", "nodename=worker-0")
    assert kept_from_jobs(cluster, 700) == first - 200


def test_a_worker_runs_sshd_when_asked(cluster: Cluster) -> None:
    port = free_port()
    environ = {"ENABLE_SSHD": "1", "SSHD_OPTIONS": f"-p {port} -o ListenAddress=127.0.0.1"}
    with cluster.worker("worker-0", environ=environ) as worker:
        worker.until(lambda: b"SSH-2.0" in banner(port), "sshd")
        assert worker.run("grep", "-c", "pam_slurm_adopt.so", "/etc/pam.d/sshd").stdout == "1\n"
        worker.until(lambda: status(cluster.worker_port, "/readyz") == 204, "slurmd ready")
        worker.signal(signal.SIGTERM)
        assert worker.wait(15) == 0, worker.output()
        assert worker.output().index("slurmd ended") < worker.output().index("sshd ended")


def test_a_worker_that_comes_before_its_controller_registers_at_once() -> None:
    cluster = Cluster()
    worker = cluster.worker("worker-0")
    with worker:
        worker.until(lambda: "waiting for 127.0.0.1" in worker.output(), "waiting")
        with cluster.controller:
            cluster.ready()
            worker.until(lambda: status(cluster.worker_port, "/readyz") == 204, "slurmd ready", 5)


def test_a_waiting_worker_stops_at_once() -> None:
    worker = Cluster().worker("worker-0")
    with worker:
        worker.until(lambda: "waiting for 127.0.0.1" in worker.output(), "waiting")
        worker.signal(signal.SIGTERM)
        assert worker.wait(5) == 0, worker.output()


def test_a_crashed_daemon_ends_the_container(cluster: Cluster) -> None:
    cluster.controller.run("pkill", "-SEGV", "-x", "slurmctld")
    assert cluster.controller.wait(10) == 128 + signal.SIGSEGV


def test_a_bad_configuration_ends_the_container_with_slurms_code() -> None:
    cluster = Cluster()
    write(cluster.controller.scratch / "volumes/etc-slurm/slurm.conf", b"Nonsense=1\n")
    with cluster.controller as controller:
        assert controller.wait(10) == 1
        assert "Nonsense" in controller.output()


def test_options_that_need_a_shell_are_refused() -> None:
    with Container("slurmctld", environ={"SLURMCTLD_OPTIONS": "$(id)"}) as container:
        assert container.wait(10) == 64
        assert "not supported" in container.output()


def test_slurmrestd_serves_as_nobody(cluster: Cluster) -> None:
    environ = {
        "SLURM_JWT": "daemon",
        "SLURMRESTD_SECURITY": "disable_unshare_files,disable_unshare_sysv",
    }
    listen = f"127.0.0.1:{cluster.rest_port}"
    rest = Container("slurmrestd", "-s", "openapi/slurmctld", listen, environ=environ)
    etc = cluster.mounts(rest, 65534)
    write(etc / "slurm.conf", cluster.conf.encode())
    with rest:
        token = cluster.scontrol("token", "username=slurm", "lifespan=60").strip().partition("=")[2]

        def answer() -> int:
            url = f"http://{listen}/openapi/v3"
            request = urllib.request.Request(url, headers={"X-SLURM-USER-TOKEN": token})
            try:
                with urllib.request.urlopen(request, timeout=5) as reply:  # noqa: S310 - http
                    return reply.status
            except OSError:
                return 0

        rest.until(lambda: answer() == 200, "OpenAPI document")
        assert Path(f"/proc/{rest.pid}/status").read_text().count("65534\t65534\t65534\t65534") == 2
        rest.signal(signal.SIGINT)  # the image's stop signal
        assert rest.wait(10) == 0, rest.output()
    assert image_config("slurmrestd")["StopSignal"] == "SIGINT"


def test_slurmdbd_ends_with_its_code_and_reason() -> None:
    with Container("slurmdbd", environ={"SLURMDBD_OPTIONS": "-v -v"}) as container:
        assert container.wait(10) == 1
        assert "StorageType must be specified" in container.output()


@pytest.mark.parametrize("mounted", [True, False])
def test_sackd_binds_its_socket(cluster: Cluster, *, mounted: bool) -> None:
    sackd = Container("sackd", "--conf-server", f"127.0.0.1:{cluster.port}")
    write(sackd.volume("/etc/slurm") / "slurm.key", KEY, 401, 0o600)
    if mounted:
        sackd.volume("/run/slurm", mode=0o777)
    with sackd:
        sackd.until(lambda: sackd.run("test", "-S", "/run/slurm/sack.socket").returncode == 0, "socket")
        done = sackd.run("scontrol", "ping")
        assert "UP" in done.stdout, done.stderr
        sackd.signal(signal.SIGTERM)
        assert sackd.wait(10) in (0, 128 + signal.SIGTERM), sackd.output()


SSSD_CONF = b"""[sssd]
services = nss,pam
domains = DEFAULT
[nss]
filter_groups = root,slurm
filter_users = root,slurm
[pam]
[domain/DEFAULT]
id_provider = proxy
proxy_lib_name = files
auth_provider = proxy
proxy_pam_target = sssd-shadowutils
"""


def test_login_runs_sackd_sshd_and_sssd(cluster: Cluster, tmp_path: Path) -> None:
    root_of("login")  # skips when it is not built
    port = free_port()
    login = Container(
        "login",
        environ={
            "SACKD_OPTIONS": f"--conf-server 127.0.0.1:{cluster.port}",
            "SSHD_OPTIONS": f"-p {port} -o ListenAddress=127.0.0.1",
        },
    )
    write(login.volume("/etc/slurm") / "slurm.key", KEY, 401, 0o600)
    login.volume("/run", mode=0o755)
    login.file("/etc/sssd/sssd.conf", SSSD_CONF, mode=0o600)
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    login.file("/etc/ssh/ssh_host_ed25519_key", key.read_bytes(), mode=0o600)
    with login:
        login.until(lambda: login.run("test", "-S", "/run/slurm/sack.socket").returncode == 0, "sack socket")
        login.until(lambda: b"SSH-2.0" in banner(port), "sshd")
        login.until(lambda: login.run("getent", "-s", "sss", "passwd", "nobody").returncode == 0, "sssd", 20)
        assert "UP" in login.run("scontrol", "ping").stdout
        keys = login.run("sh", "-c", "ls /etc/ssh/ssh_host_*; cat /etc/ssh/ssh_host_ed25519_key").stdout
        assert keys == f"/etc/ssh/ssh_host_ed25519_key\n{key.read_text()}"  # the mounted one, no other
        assert "pam_mkhomedir" in (root_of("login") / "etc/pam.d/common-session").read_text()
        login.signal(signal.SIGTERM)
        assert login.wait(20) == 0, login.output()


def banner(port: int) -> bytes:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            return connection.recv(64)
    except OSError:
        return b""


def test_the_operators_entry_points_start() -> None:
    with Container("operator", "--help") as container:
        assert container.wait(20) == 0, container.output()

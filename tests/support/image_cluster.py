"""slurmctld from its image, and others against it, on ports of their own, without a container engine."""

import os
import socket
import urllib.error
import urllib.request
from pathlib import Path

from tests.support.container import Container, write

KEY = os.urandom(64)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def status(port: int, path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=2) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        error.close()
        return error.code
    except OSError:
        return 0


class Cluster:
    """slurmctld from its image, and the others against it, on ports of their own."""

    def __init__(self) -> None:
        self.port, self.worker_port, self.rest_port = free_port(), free_port(), free_port()
        self.conf = "\n".join(
            [
                "ClusterName=t",
                "SlurmUser=slurm",
                "SlurmctldHost=controller(127.0.0.1)",
                f"SlurmctldPort={self.port}",
                f"SlurmdPort={self.worker_port}",
                "AuthType=auth/slurm",
                "CredType=cred/slurm",
                "AuthAltTypes=auth/jwt",
                "AuthAltParameters=jwt_key=/etc/slurm/jwt.key",
                "StateSaveLocation=/var/spool/slurmctld/t",
                "SlurmctldParameters=enable_configless",
                "ProctrackType=proctrack/linuxproc",
                "PrologFlags=Contain",
                "MaxNodeCount=16",
                "PartitionName=all Nodes=ALL Default=YES",
                "",
            ]
        )
        self.controller = Container("slurmctld", hostname="controller")
        etc = self.mounts(self.controller, 401)
        self.controller.volume("/run/slurmctld", 401)
        self.controller.volume("/var/spool/slurmctld/t", 401)
        write(etc / "slurm.conf", self.conf.encode())
        write(etc / "cgroup.conf", b"CgroupPlugin=disabled\n")

    def mounts(self, container: Container, owner: int) -> Path:
        """Add the volumes that pods have and return the one at /etc/slurm."""
        etc = container.volume("/etc/slurm")
        write(etc / "slurm.key", KEY, owner, 0o600)
        write(etc / "jwt.key", KEY, owner, 0o600)
        container.volume("/run", mode=0o777)
        container.volume("/var/log/slurm", 401, 0o777)
        return etc

    def ready(self) -> None:
        self.controller.until(lambda: status(self.port, "/readyz") == 204, "slurmctld ready")

    def worker(
        self, name: str, *more: str, environ: dict[str, str] | None = None, archive: Path | None = None
    ) -> Container:
        """A slurmd, of its image or of an archive made from it."""
        server = ("--conf-server", f"127.0.0.1:{self.port}")
        worker = Container("slurmd", "-Z", *server, *more, hostname=name, environ=environ, archive=archive)
        self.mounts(worker, 0)
        worker.volume("/var/spool/slurmd")
        return worker

    def scontrol(self, *words: str) -> str:
        done = self.controller.run("scontrol", *words, user="401:401")
        assert done.returncode == 0, done.stderr
        return done.stdout

"""A real MariaDB and slurmdbd beside the plain processes of `tests.support.slurm`."""

import contextlib
import os
import re
import signal
from collections.abc import Generator
from typing import Any

from coil.build.accounting import slurmdbd_conf
from tests.support import slurm
from tests.support.container import Container
from tests.support.resources import accounting

MYSQL = 402
PASSWORD = "a'b\\c\"#d%$1;=é"


@contextlib.contextmanager
def database(*options: str, files: dict[str, bytes] | None = None) -> Generator[int]:
    """A MariaDB of the lab's image on a port of its own, which is given; its volume is new."""
    [port] = slurm.free_ports(1)
    arguments = ("tini", "--", "/usr/local/bin/entrypoint.sh", "--port", str(port), *options)
    container = Container("mariadb", entrypoint=arguments, environ={"MARIADB_PASSWORD": PASSWORD})
    container.volume("/var/lib/mysql", MYSQL)
    for path, content in (files or {}).items():
        container.file(path, content, MYSQL, 0o600)
    with container:
        try:
            slurm.wait_until(lambda: slurm.listens(port), 40, "MariaDB listens")
            yield port
        finally:
            # It runs as a user of its own: the kernel no longer ends it with us.
            container.signal(signal.SIGTERM)
            container.wait(20)


class Slurmdbd:
    """slurmdbd of a cluster, with the configuration that coil renders."""

    def __init__(self, cluster: slurm.SlurmCluster) -> None:
        self.cluster = cluster
        [self.port] = slurm.free_ports(1)
        self.daemon: slurm.Daemon | None = None
        run = cluster.state / "run" / "slurmdbd"
        run.mkdir()
        os.chown(run, slurm.SLURM, slurm.SLURM)

    def configure(self, database_port: int, password: str = PASSWORD, **spec: Any) -> None:
        """Write slurmdbd.conf; only addresses and ports are those of the test."""
        storage = {"host": "127.0.0.1", "port": database_port, "username": "slurm"}
        reference = {"passwordKeyRef": {"name": "db", "key": "pw"}}
        text = slurmdbd_conf(accounting(storageConfig=storage | reference, **spec), password.encode())
        text = re.sub(r"^DbdHost=.*$", "DbdHost=localhost", text, flags=re.MULTILINE)
        text = re.sub(r"^DbdPort=.*$", f"DbdPort={self.port}", text, flags=re.MULTILINE)
        path = self.cluster.state / "etc" / "slurmdbd.conf"
        path.write_text(text)
        path.chmod(0o600)
        os.chown(path, slurm.SLURM, slurm.SLURM)

    def begin(self) -> None:
        """Start slurmdbd without waiting for anything."""
        self.daemon = slurm.Daemon(self.cluster, "dbd", *slurm.as_user(slurm.SLURM), "slurmdbd", "-D")

    def start(self) -> None:
        """Start slurmdbd and wait until it serves."""
        self.begin()
        slurm.wait_until(lambda: slurm.listens(self.port), 20, f"slurmdbd listens:\n{self.output()}")

    def stop(self) -> None:
        """End slurmdbd, if it runs."""
        if self.daemon is not None and self.daemon.running:
            self.daemon.stop()

    def output(self) -> str:
        """What it has printed."""
        path = self.cluster.state / "dbd.out"
        return path.read_text() if path.exists() else ""

    def use(self, *, wanted: bool) -> None:
        """Let slurm.conf name this slurmdbd, or none; for the next start of slurmctld."""
        path = self.cluster.state / "etc" / "slurm.conf"
        text = re.sub(r"^AccountingStorage.*\n", "", path.read_text(), flags=re.MULTILINE)
        lines = ["AccountingStorageType=accounting_storage/none"]
        if wanted:
            lines = [
                "AccountingStorageType=accounting_storage/slurmdbd",
                "AccountingStorageHost=localhost",
                f"AccountingStoragePort={self.port}",
            ]
        path.write_text(text + "".join(f"{line}\n" for line in lines))

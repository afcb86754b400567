"""What slurmctld and slurmdbd do when the other, or the database, is not as expected (field cases DBD)."""

import signal
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from coil.kinds.podlog import last_complaint
from lab.certificates import Authority, Subject
from tests.support import slurm
from tests.support.slurmdbd import Slurmdbd, database

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.timeout(120),
    pytest.mark.skipif(bool(slurm.missing()), reason=slurm.missing()),
]


@pytest.fixture(scope="module")
def database_port() -> Iterator[int]:
    """One database for the tests of this module; each has a cluster name of its own."""
    with database() as port:
        yield port


@pytest.fixture
def cluster(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[slurm.SlurmCluster]:
    """Folders for a cluster that is named after the test."""
    with tempfile.TemporaryDirectory(prefix="coil-slurm-", dir=tmp_path.parents[1]) as folder:
        state = Path(folder)
        state.chmod(0o755)
        made = slurm.SlurmCluster(state)
        conf = state / "etc" / "slurm.conf"
        name = f"c{zlib.crc32(request.node.name.encode())}"
        conf.write_text(conf.read_text().replace("ClusterName=contract", f"ClusterName={name}"))
        yield made
        made.stop()


@pytest.fixture
def dbd(cluster: slurm.SlurmCluster, database_port: int) -> Iterator[Slurmdbd]:
    """A slurmdbd that is configured and not started."""
    made = Slurmdbd(cluster)
    made.configure(database_port)
    yield made
    made.stop()


def stop_ctld(cluster: slurm.SlurmCluster) -> None:
    """End slurmctld as a pod's end does: it writes its state."""
    assert cluster.ctld
    cluster.ctld.stop(signal.SIGTERM)


def ctld_log(cluster: slurm.SlurmCluster) -> str:
    path = cluster.state / "log" / "slurmctld.log"
    return path.read_text() if path.exists() else ""


def ready(cluster: slurm.SlurmCluster) -> bool:
    return slurm.answers(f"http://127.0.0.1:{cluster.ports['ctld']}/readyz")


def test_the_first_start_waits_for_slurmdbd(cluster: slurm.SlurmCluster, dbd: Slurmdbd) -> None:
    """It does not end, serves nobody, and is there within seconds of slurmdbd."""
    dbd.use(wanted=True)
    cluster.ctld = slurm.Daemon(cluster, "ctl", *slurm.as_user(slurm.SLURM), "slurmctld", "-D")
    slurm.wait_until(lambda: "Retrying initial connection" in ctld_log(cluster), 20, "slurmctld waits")
    assert cluster.ctld.running
    assert not ready(cluster)
    dbd.start()
    slurm.wait_until(lambda: ready(cluster), 8, "slurmctld serves")
    assert "normal" in cluster.run("sacctmgr", "--noheader", "show", "qos", "format=name")


def test_a_later_start_does_not_need_slurmdbd(cluster: slurm.SlurmCluster, dbd: Slurmdbd) -> None:
    """Its state folder holds what it has to know."""
    dbd.use(wanted=True)
    dbd.start()
    cluster.start_ctld()
    stop_ctld(cluster)
    dbd.stop()
    cluster.start_ctld()
    assert "UP" in cluster.run("scontrol", "ping")


def test_accounting_is_added_to_a_cluster_that_ran_without(
    cluster: slurm.SlurmCluster, dbd: Slurmdbd
) -> None:
    """Field case DBD-05: slurmdbd takes over the identity of a cluster it does not know."""
    dbd.use(wanted=False)
    cluster.start_ctld()
    stop_ctld(cluster)
    dbd.use(wanted=True)
    dbd.start()
    cluster.start_ctld()
    assert cluster.run("sacctmgr", "--noheader", "show", "cluster", "format=cluster").strip()


def test_another_cluster_of_that_name_is_told_with_the_remedy(
    cluster: slurm.SlurmCluster, dbd: Slurmdbd
) -> None:
    """Field case DBD-05: the database knows the name by another identity; queued jobs survive the remedy."""
    dbd.use(wanted=True)
    dbd.start()
    cluster.start_ctld()
    stop_ctld(cluster)
    for file in (cluster.state / "spool").iterdir():
        file.unlink()
    dbd.use(wanted=False)
    cluster.start_ctld()
    job = cluster.run("sbatch", "--parsable", "--hold", "--chdir=/tmp", "--wrap", "true").strip()
    stop_ctld(cluster)
    dbd.use(wanted=True)
    cluster.ctld = slurm.Daemon(cluster, "ctl", *slurm.as_user(slurm.SLURM), "slurmctld", "-D")
    cluster.ctld.ended()
    told = last_complaint(ctld_log(cluster), fatal=True)
    assert told.startswith("CLUSTER ID MISMATCH.")
    assert "clustername to override this safety check" in told
    (cluster.state / "spool" / "clustername").unlink()
    cluster.start_ctld()
    assert cluster.run("squeue", "--noheader", "--format=%i").split() == [job]


def test_a_refused_password_is_told_by_slurmdbd(dbd: Slurmdbd, database_port: int) -> None:
    dbd.configure(database_port, password="wrong")
    dbd.begin()
    slurm.wait_until(
        lambda: "Access denied for user 'slurm'" in last_complaint(dbd.output()), 20, "slurmdbd complains"
    )
    assert dbd.daemon
    assert dbd.daemon.running


def test_a_database_that_demands_tls(cluster: slurm.SlurmCluster) -> None:
    """Field case DBD-04: extraConf names the CA; another CA is told."""
    authority = Authority.create("database")
    server = authority.issue(Subject("mariadb", hosts=["127.0.0.1", "localhost"]))
    files = {
        "/etc/mysql/ca.pem": authority.credentials.certificate,
        "/etc/mysql/server.crt": server.certificate,
        "/etc/mysql/server.key": server.key,
    }
    options = [
        "--require-secure-transport=ON",
        *(f"--ssl-{name}={path}" for name, path in zip(("ca", "cert", "key"), files, strict=True)),
    ]
    ca, other = cluster.state / "etc" / "ca.pem", cluster.state / "etc" / "other.pem"
    ca.write_bytes(authority.credentials.certificate)
    other.write_bytes(Authority.create("another").credentials.certificate)
    dbd = Slurmdbd(cluster)
    with database(*options, files=files) as port:
        dbd.configure(port, extraConf="StorageParameters=SSL_CA=/etc/slurm/other.pem")
        dbd.begin()
        slurm.wait_until(lambda: "TLS/SSL error" in last_complaint(dbd.output()), 20, "slurmdbd complains")
        dbd.stop()
        dbd.configure(port, extraConf="StorageParameters=SSL_CA=/etc/slurm/ca.pem")
        dbd.start()
        dbd.stop()

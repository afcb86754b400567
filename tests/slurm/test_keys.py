"""How slurmctld, slurmdbd and slurmrestd take other keys while they run (docs: keys)."""

import base64
import contextlib
import json
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from coil.slurm.jwks import RS256, key_set
from coil.slurm.tokens import mint
from tests.support import slurm
from tests.support.slurm import slurm_jwks
from tests.support.slurmdbd import Slurmdbd, database
from tests.support.token_holder import answers

pytestmark = [
    pytest.mark.slurm,
    pytest.mark.timeout(120),
    pytest.mark.skipif(bool(slurm.missing()), reason=slurm.missing()),
]


def pem() -> bytes:
    key = rsa.generate_private_key(65537, 2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def put(cluster: slurm.SlurmCluster, name: str, content: bytes) -> None:
    """Replace a file of /etc/slurm as the kubelet does: at once, readable for slurmctld alone."""
    path = cluster.state / "etc" / name
    new = path.with_suffix(".new")
    new.write_bytes(content)
    new.chmod(0o600)
    os.chown(new, slurm.SLURM, slurm.SLURM)
    new.replace(path)


def add_jwks(cluster: slurm.SlurmCluster, *keys: bytes) -> None:
    """Let slurm.conf name a JWKS with these keys."""
    put(cluster, "jwks.json", json.dumps(key_set(keys)).encode())
    conf = cluster.state / "etc" / "slurm.conf"
    option = "jwt_key=/etc/slurm/jwt.key"
    conf.write_text(conf.read_text().replace(option, f"{option},jwks=/etc/slurm/jwks.json"))


def token(key: bytes, algorithm: str = "HS256") -> str:
    return mint(key, "slurm", 600, time.time(), algorithm)


def takes(cluster: slurm.SlurmCluster, *tokens: str) -> list[bool]:
    """Which of the tokens slurmctld takes."""
    return [answers(cluster.base_url, each) for each in tokens]


def reconfigured(cluster: slurm.SlurmCluster, *tokens: str, wanted: list[bool]) -> None:
    """Reconfigure slurmctld and wait until it takes what it should."""
    cluster.run("scontrol", "reconfigure")
    slurm.wait_until(lambda: takes(cluster, *tokens) == wanted, 10, f"tokens taken: {wanted}")


def test_one_hs256_key_at_a_time_read_at_a_reconfigure(cluster: slurm.SlurmCluster) -> None:
    """Therefore no HS256 key can be replaced without a moment in which somebody is refused."""
    other = secrets.token_bytes(32)
    old, new = token(cluster.jwt_key), token(other)
    put(cluster, "jwt.key", other)
    assert takes(cluster, old, new) == [True, False]
    reconfigured(cluster, old, new, wanted=[False, True])
    former = base64.urlsafe_b64encode(cluster.jwt_key).decode()
    add_jwks(cluster)
    oct_key = {"kty": "oct", "alg": "HS256", "kid": "old", "k": former}
    put(cluster, "jwks.json", json.dumps({"keys": [oct_key]}).encode())
    reconfigured(cluster, old, new, wanted=[False, True])


def test_several_rs256_keys_at_once_beside_the_hs256_key(cluster: slurm.SlurmCluster) -> None:
    """The way to other keys without a refusal: add, change who signs, remove."""
    first, second = pem(), pem()
    old, new, secret = token(first, RS256), token(second, RS256), token(cluster.jwt_key)
    add_jwks(cluster, first)
    reconfigured(cluster, old, new, secret, wanted=[True, False, True])
    put(cluster, "jwks.json", json.dumps(key_set([first, second])).encode())
    reconfigured(cluster, old, new, secret, wanted=[True, True, True])
    put(cluster, "jwks.json", json.dumps(key_set([second])).encode())
    assert takes(cluster, old) == [True]
    reconfigured(cluster, old, new, secret, wanted=[False, True, True])


def test_a_key_in_pem_form_is_a_secret_of_hs256(cluster: slurm.SlurmCluster) -> None:
    """As Slurm's documentation once said to make it."""
    key = pem()
    put(cluster, "jwt.key", key)
    reconfigured(cluster, token(key), wanted=[True])


@pytest.fixture
def accounted(tmp_path: Path) -> Iterator[tuple[slurm.SlurmCluster, Slurmdbd]]:
    """A cluster that keeps accounts."""
    with (
        tempfile.TemporaryDirectory(prefix="coil-slurm-", dir=tmp_path.parents[1]) as folder,
        database() as port,
    ):
        Path(folder).chmod(0o755)
        cluster = slurm.SlurmCluster(Path(folder))
        dbd = Slurmdbd(cluster)
        dbd.configure(port)
        dbd.use(wanted=True)
        try:
            dbd.start()
            cluster.start_ctld()
            cluster.start_rest()
            yield cluster, dbd
        finally:
            dbd.stop()
            cluster.stop()


def test_slurmdbd_needs_a_new_start_for_another_key(accounted: tuple[slurm.SlurmCluster, Slurmdbd]) -> None:
    (cluster, dbd), path, other = accounted, "slurmdb/v0.0.44/clusters/", secrets.token_bytes(32)
    old, new = token(cluster.jwt_key), token(other)
    slurm.wait_until(lambda: answers(cluster.base_url, old, path), 10, "slurmdbd answers")
    put(cluster, "jwt.key", other)
    cluster.run("sacctmgr", "-i", "reconfigure")
    assert (answers(cluster.base_url, old, path), answers(cluster.base_url, new, path)) == (True, False)
    dbd.stop()
    dbd.start()
    slurm.wait_until(lambda: answers(cluster.base_url, new, path), 10, "slurmdbd takes the new key")
    assert not answers(cluster.base_url, old, path)


class Apart:
    """A slurmctld and a slurmd with files of their own, as in two pods."""

    def __init__(self, ctl: slurm.SlurmCluster, worker: slurm.SlurmCluster) -> None:
        self.ctl, self.worker = ctl, worker
        worker.ports = ctl.ports
        shutil.copy(ctl.state / "etc/slurm.conf", worker.state / "etc/slurm.conf")

    def start(self) -> int:
        """Start both and a job."""
        self.ctl.start_ctld()
        words = ("slurmd", "-D", "-Z", "-N", "w-0", "--conf", "RealMemory=1000 CPUs=2")
        self.worker.workers.append(slurm.Daemon(self.worker, "w-0", *words))
        slurm.wait_until(lambda: "NodeName=w-0 " in self.ctl.node_line("w-0"), 20, "w-0 registers")
        job = self.ctl.run("sbatch", "--parsable", "--chdir=/tmp", "--output=/dev/null", "--wrap=sleep 300")
        slurm.wait_until(lambda: self.job_runs(job.strip()), 20, "the job runs")
        return int(job)

    def reconfigure(self) -> None:
        """As the operator does: tell slurmctld, which tells the slurmds."""
        self.ctl.run("scontrol", "reconfigure")

    def job_runs(self, job: int | str) -> bool:
        return self.ctl.run("squeue", "--noheader", "--format=%T", f"--jobs={job}").strip() == "RUNNING"

    def agree(self) -> bool:
        """A command beside slurmd is let in by slurmctld."""
        return self.worker.run("sinfo", "--noheader", "--format=%D").strip() == "1"


@pytest.fixture
def apart(tmp_path: Path) -> Iterator[Apart]:
    """Not started yet."""
    with contextlib.ExitStack() as stack:
        pair: list[slurm.SlurmCluster] = []
        for _ in range(2):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=tmp_path.parents[1])))
            folder.chmod(0o755)
            pair.append(slurm.SlurmCluster(folder))
            stack.callback(pair[-1].stop)
        yield Apart(*pair)


def test_several_slurm_keys_are_replaced_in_three_steps_while_a_job_runs(apart: Apart) -> None:
    """Add, sign with the new one, remove: each when all have read what came before."""
    first, second = secrets.token_bytes(64), secrets.token_bytes(64)
    sides = (apart.worker, apart.ctl)
    for side in sides:
        (side.state / "etc/slurm.key").unlink()
        put(side, "slurm.jwks", slurm_jwks("a", a=first).encode())
    job = apart.start()
    for step in (
        slurm_jwks("a", a=first, b=second),
        slurm_jwks("b", a=first, b=second),
        slurm_jwks("b", b=second),
    ):
        for side in sides:
            put(side, "slurm.jwks", step.encode())
            apart.reconfigure()
            slurm.wait_until(apart.agree, 10, "both sides hear one another with the file on one side only")
            assert apart.job_runs(job)
    apart.ctl.run("scancel", str(job))
    idle = "State=IDLE+DYNAMIC_NORM "
    slurm.wait_until(lambda: idle in apart.ctl.node_line("w-0"), 20, "the job's end is told with another key")
    # Without the step between, nobody would hear: the test would notice.
    put(apart.ctl, "slurm.jwks", slurm_jwks("c", c=first).encode())
    apart.reconfigure()
    slurm.wait_until(lambda: not apart.agree(), 10, "a key that slurmd has not")


def test_another_slurm_key_parts_slurmctld_from_the_slurmds_at_a_reconfigure(apart: Apart) -> None:
    """Therefore the operator makes none; with the former key back, all goes on."""
    key = secrets.token_bytes(128)
    for side in (apart.ctl, apart.worker):
        put(side, "slurm.key", key)
    job = apart.start()
    for side in (apart.ctl, apart.worker):
        put(side, "slurm.key", secrets.token_bytes(128))
    assert apart.agree()
    apart.reconfigure()
    slurm.wait_until(lambda: not apart.agree(), 10, "slurmctld refuses the slurmd's key")
    put(apart.ctl, "slurm.key", key)
    assert apart.ctl.ctld is not None
    apart.ctl.ctld.stop()
    apart.ctl.start_ctld()
    slurm.wait_until(apart.agree, 10, "the former key")
    assert apart.job_runs(job)

"""People of an LDAP directory log in, submit jobs under their own ids and see them.

For the ssh client all login pods are one host (HostKeyAlias): it refuses a host key that changed.
"""

import base64
import json
import secrets
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from lab import cluster as lab
from lab import images
from tests.support.accounting import AccountedCluster
from tests.support.kubectl import Kubectl, wait_until
from tests.support.login_site import LoginSite
from tests.support.slurm_cluster import SlurmCluster
from tests.support.ssh import Ssh

pytestmark = [pytest.mark.lab, pytest.mark.timeout(420)]

ADA, GRACE = 10001, 10002
SCIENCE, PHYSICS = 20001, 20002
NO_JOB = "you have no active jobs on this node"

DOOR = """
apiVersion: slinky.slurm.net/v1beta1
kind: NodeSet
metadata: {{name: door, namespace: {name}}}
spec:
  controllerRef: {{name: {name}}}
  scalingMode: StatefulSet
  oversubscribeNode: true
  ssh:
    enabled: true
    sssdConfRef: {{name: users, key: sssd.conf}}
    extraSshdConfig: |
      AuthorizedKeysCommand /usr/bin/sss_ssh_authorizedkeys
      AuthorizedKeysCommandUser nobody
  slurmd:
    image: "coil.local/worker-sssd:lab"
    volumeMounts:
    - {{name: home, mountPath: /home}}
    - {{name: ldap-ca, mountPath: /etc/ldap/tls}}
  logfile: {{image: "coil.local/tools:lab"}}
  partition: {{enabled: true}}
  template:
    spec:
      volumes:
      - {{name: home, persistentVolumeClaim: {{claimName: home}}}}
      - {{name: ldap-ca, secret: {{secretName: ldap-tls, items: [{{key: ca.crt, path: ca.crt}}]}}}}
"""


@pytest.fixture(scope="module", autouse=True)
def _images() -> None:
    """`make up` loads only what it finds built."""
    names = ("login", "ldap", "worker-sssd")
    images.build(names)
    for name in names:
        lab.load(images.IMAGES[name].reference)


@pytest.fixture
def site(new_cluster: Callable[[], SlurmCluster], tmp_path: Path) -> LoginSite:
    made = LoginSite(new_cluster(), Ssh(tmp_path))
    made.create()
    return made


def test_a_user_of_the_directory_runs_a_job_under_her_own_ids(site: LoginSite) -> None:
    """The job's ids, groups, files and place in the queue are hers; nobody else may end it."""
    first, second = site.pods().values()
    assert site.as_ada(first, "id -u; id -g; id -Gn; pwd").split() == [
        *(str(ADA), str(SCIENCE), "science", "physics", "/home/ada")
    ]
    script = "#!/bin/sh\nid -u; id -g; id -G; pwd\ntouch mark\nsleep 30\n"
    number = int(site.as_ada(first, "sbatch --parsable --output=out", stdin=script))
    began = time.monotonic()
    job = site.cluster.wait_job(number, "RUNNING", within=60)
    print(f"running {time.monotonic() - began:.1f} s after sbatch")
    # slurmctld knows ids only, and needs no more: names are the login pods' business.
    assert job["UserId"].endswith(f"({ADA})")
    assert job["GroupId"].endswith(f"({SCIENCE})")
    assert site.as_ada(second, "squeue --me --noheader --format=%i:%u").split() == [f"{number}:ada"]
    assert f"UserId=ada({ADA})" in site.as_ada(second, f"scontrol show job {number}")
    ids = wait_until(lambda: site.as_ada(second, "cat out").split(), within=20, what="the job's output")
    assert ids == [str(ADA), str(SCIENCE), str(SCIENCE), str(PHYSICS), "/home/ada"]
    assert on_worker(site, "stat", "-c", "%u:%g", "/home/ada/mark").strip() == f"{ADA}:{SCIENCE}"
    assert "sleep 30" in on_worker(site, "ps", "-o", "uid=,args=", "-u", str(ADA))
    other = site.ssh.try_run("grace", first, f"scancel {number}", password=site.password)
    assert "denied" in other.stderr
    site.as_ada(first, f"scancel {number}")
    site.cluster.wait_job(number, "CANCELLED")


def test_a_user_sees_her_own_jobs_in_the_accounts(kubectl: Kubectl, tmp_path: Path) -> None:
    """Slurmdbd knows ids only, like slurmctld; the login pod gives them their names."""
    cluster = AccountedCluster(kubectl, f"e2e-{secrets.token_hex(3)}")
    site = LoginSite(cluster, Ssh(tmp_path))
    try:
        site.apply()
        cluster.create_database()
        cluster.wait_available(within=120)
        site.wait()
        host = next(iter(site.pods().values()))
        number = int(site.as_ada(host, "sbatch --parsable --wrap true"))
        cluster.wait_recorded(number)
        columns = "--noheader --parsable2 --allocations --format=JobID,User,UID,GID,State"
        assert site.as_ada(host, f"sacct {columns}").split() == [f"{number}|ada|{ADA}|{SCIENCE}|COMPLETED"]
        others = site.ssh.run("grace", host, f"sacct {columns}", password=site.password)
        assert str(number) not in others
    finally:
        cluster.delete()


def test_workers_can_be_reached_by_name_from_login_pods(site: LoginSite) -> None:
    """Field case REG-04: srun by node name, with and without a terminal, and the name resolves."""
    host = next(iter(site.pods().values()))
    worker = next(iter(site.cluster.workers()))
    assert site.as_ada(host, f"srun --chdir=/tmp -w {worker} hostname").split() == [worker]
    assert worker in site.as_ada(host, f"srun --chdir=/tmp -w {worker} --pty hostname")
    assert worker in site.as_ada(host, f"getent hosts {worker}")


def test_who_may_log_in(site: LoginSite) -> None:
    """A key or a password of the directory and root's own key open the door; nothing else does."""
    host = next(iter(site.pods().values()))
    assert site.as_ada(host, "id -u").split() == [str(ADA)]
    assert site.ssh.run("grace", host, "id -u", password=site.password).split() == [str(GRACE)]
    assert site.ssh.run("root", host, "id -u", key="root").split() == ["0"]
    site.ssh.new_key("stranger")
    for user, key, password in (
        ("grace", "", "wrong"),
        ("ada", "stranger", ""),
        ("root", "ada", ""),
        ("nobody-of-that-name", "", site.password),
    ):
        answer = site.ssh.try_run(user, host, "true", key=key, password=password)
        assert "Permission denied" in answer.stderr, user


def test_host_keys_stay(site: LoginSite) -> None:
    """All replicas have the same keys, and so have the pods that follow them (invariant I10)."""
    pods = site.pods()
    for host in pods.values():
        site.as_ada(host, "true")
    known = (site.ssh.folder / "known_hosts").read_text()
    site.kubectl("delete", "pod", *pods, "--wait=false")
    for host in site.wait_pods(2, without=frozenset(pods)).values():
        site.as_ada(host, "true")
    site.kubectl("scale", "loginset", "login", "--replicas=3")
    for host in site.wait_pods(3).values():
        site.as_ada(host, "true")
    assert (site.ssh.folder / "known_hosts").read_text() == known
    assert json.loads(site.kubectl("get", "loginset", "login", "-o", "json"))["status"]["replicas"] == 3


def test_only_the_value_referred_to_replaces_pods_and_one_at_a_time(site: LoginSite) -> None:
    """Field cases LGN-04 and LGN-11: another key of the Secret changes nothing."""
    pods = site.pods()
    patch_users(site, {"other": "x"})
    users = json.loads(site.kubectl("get", "secret", "users", "-o", "json"))["data"]
    text = base64.b64decode(users["sssd.conf"]).decode()
    patch_users(site, {"sssd.conf": f"{text}cache_credentials = true\n"})
    fewest = len(pods)

    def replaced() -> bool:
        nonlocal fewest
        now = site.pods()
        fewest = min(fewest, len(now))
        return len(now) == len(pods) and not now.keys() & pods.keys()

    wait_until(replaced, within=120, what="both login pods replaced")
    assert fewest == len(pods) - 1
    deployment = json.loads(site.kubectl("get", "deployment", "login", "-o", "json"))
    assert deployment["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"
    for host in site.pods().values():
        assert site.as_ada(host, "id -u").split() == [str(ADA)]
        assert site.ssh.run("root", host, "grep cache_credentials /etc/sssd/sssd.conf", key="root")


def test_the_door_of_a_worker_opens_for_those_who_have_a_job_there(site: LoginSite) -> None:
    """Field case LGN-07: for people of the directory, before, during and after their job."""
    site.cluster.kubectl.apply(DOOR.format(name=site.cluster.name))
    host = next(iter(site.pods().values()))
    site.as_ada(host, "true")  # her home is made
    site.cluster.wait_idle(2)
    worker = site.cluster.workers()["door-0"]["status"]["podIP"]

    def enter(command: str) -> CompletedProcess[str]:
        return site.ssh.try_run("ada", worker, command, key="ada", alias="door")

    def refused() -> bool:
        answer = enter("id -u")
        return answer.returncode != 0 and NO_JOB in answer.stdout + answer.stderr

    # The directory knows her and her key; SSSD may need a moment for it.
    wait_until(refused, within=30, what="ada is refused as one without a job")
    submit = "sbatch --parsable --chdir=/tmp --output=/dev/null -p door --wrap 'sleep 120'"
    number = int(site.as_ada(host, submit))
    site.cluster.wait_job(number, "RUNNING")
    inside = enter("id -un; cat /proc/self/cgroup")
    assert inside.stdout.split()[:1] == ["ada"], inside.stderr
    # Adopted: what she does there counts as the job's, and ends with it.
    assert f"job_{number}/" in inside.stdout
    grace = site.ssh.try_run("grace", worker, "id -u", password=site.password, alias="door")
    assert NO_JOB in grace.stdout + grace.stderr
    with ThreadPoolExecutor() as pool:
        session = pool.submit(enter, "touch inside; sleep 60")
        site.as_ada(host, "until [ -e inside ]; do sleep 0.2; done")
        assert not session.done()
        site.as_ada(host, f"scancel {number}")
        site.cluster.wait_job(number, "CANCELLED")
        began = time.monotonic()
        assert session.result().returncode not in (0, 124), "the session outlived the job"
        print(f"the open session ended {time.monotonic() - began:.1f} s after the job")
    assert refused()


def patch_users(site: LoginSite, values: dict[str, str]) -> None:
    patch = json.dumps({"stringData": values})
    site.kubectl("patch", "secret", "users", "--type=merge", "--patch", patch)


def on_worker(site: LoginSite, *command: str) -> str:
    worker = next(iter(site.cluster.workers()))
    return site.cluster.kubectl.exec(site.cluster.name, worker, "slurmd", *command)

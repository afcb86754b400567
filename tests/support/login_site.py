"""A cluster with login pods and an LDAP directory, and a person's ssh client outside."""

import base64
import secrets
import string
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.certificates import Authority, Subject
from tests.support.kubectl import wait_until
from tests.support.slurm_cluster import SlurmCluster
from tests.support.ssh import Ssh

LOGIN = "app.kubernetes.io/name=login"

_MANIFESTS = string.Template((Path(__file__).parents[1] / "data/e2e/login.yaml").read_text())
_WORKER = 'slurmd: {image: "coil.local/slurmd:lab"}\n'
_WORKER_WITH_HOME = (
    'slurmd: {image: "coil.local/slurmd:lab", volumeMounts: [{name: home, mountPath: /home}]}\n'
    "  template: {spec: {volumes: [{name: home, persistentVolumeClaim: {claimName: home}}]}}\n"
)
_FILES = "configFileRefs: [{name: files}]\n"
# pam_slurm_adopt puts sessions into the step that this flag makes.
_FILES_AND_CONTAIN = f"{_FILES}  extraConf: PrologFlags=Contain\n"


@dataclass(frozen=True)
class LoginSite:
    """One worker and two login pods that share /home. In the directory Ada has a key, Grace a password."""

    cluster: SlurmCluster
    ssh: Ssh
    password: str = field(default_factory=lambda: secrets.token_hex(12))

    def create(self) -> None:
        """Apply everything and wait until people can log in."""
        self.apply()
        self.wait()

    def apply(self) -> None:
        """Apply the directory, and the login nodes when it answers.

        SSSD that meets a directory in its first second may wait for ever for the end of the TLS handshake.
        """
        site = _MANIFESTS.substitute(
            name=self.cluster.name,
            ada_key=self.ssh.new_key("ada"),
            root_key=self.ssh.new_key("root"),
            grace_password=self.password,
            **_certificates(f"ldap.{self.cluster.name}.svc.cluster.local"),
        )
        everything = self.cluster.manifests(replicas=1)
        for plain, changed in ((_WORKER, _WORKER_WITH_HOME), (_FILES, _FILES_AND_CONTAIN)):
            assert plain in everything
            everything = everything.replace(plain, changed)
        documents = f"{everything}---\n{site}".split("---\n")
        login = [each for each in documents if "kind: LoginSet" in each]
        self.cluster.kubectl.apply("---\n".join(each for each in documents if each not in login))
        self.kubectl("wait", "--for=condition=Ready", "pod/ldap", "--timeout=60s")
        self.cluster.kubectl.apply("---\n".join(login))

    def wait(self) -> None:
        """Wait until people can log in."""
        self.cluster.wait_idle(1)
        for host in self.wait_pods(2).values():
            self.as_ada(host, "true")

    def kubectl(self, *arguments: str) -> str:
        """Run kubectl in the cluster's namespace."""
        return self.cluster.kubectl.run(*arguments, "--namespace", self.cluster.name)

    def pods(self) -> dict[str, str]:
        """Names and addresses of the ready login pods."""
        name = self.cluster.name
        found = self.cluster.kubectl.get("pods", "--namespace", name, "--selector", LOGIN) or []
        return {pod["metadata"]["name"]: pod["status"]["podIP"] for pod in found if _ready(pod)}

    def wait_pods(self, count: int, *, without: frozenset[str] = frozenset()) -> dict[str, str]:
        """Wait until so many login pods are ready, none of them one of `without`."""

        def enough() -> dict[str, str] | None:
            pods = self.pods()
            return pods if len(pods) == count and not pods.keys() & without else None

        return wait_until(enough, within=120, what=f"{count} login pods in {self.cluster.name}")

    def as_ada(self, host: str, command: str, *, stdin: str = "") -> str:
        """Run a command as Ada; a new pod's SSSD may need a moment until it knows her."""

        def known() -> bool:
            answer = self.ssh.try_run("ada", host, "true", key="ada")
            assert "HOST IDENTIFICATION HAS CHANGED" not in answer.stderr
            return answer.returncode == 0

        wait_until(known, within=40, what=f"ada can log in to {host}")
        return self.ssh.run("ada", host, command, key="ada", stdin=stdin)


def _ready(pod: dict[str, Any]) -> bool:
    statuses = pod["status"].get("containerStatuses", [])
    ready = bool(statuses) and all(status["ready"] for status in statuses)
    return ready and "deletionTimestamp" not in pod["metadata"]


def _certificates(host: str) -> dict[str, str]:
    """What slapd shows, and what SSSD checks it with, as data of a Secret."""
    authority = Authority.create("directory")
    issued = authority.issue(Subject("ldap", hosts=[host]))
    files = {
        "certificate": issued.certificate,
        "certificate_key": issued.key,
        "authority": authority.credentials.certificate,
    }
    return {name: base64.b64encode(content).decode() for name, content in files.items()}

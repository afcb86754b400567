"""The webhook as a process of its own, with the rights that the chart gives it."""

import base64
import json
import os
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
import uuid
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from lab import binaries
from lab.apiserver import ApiServer
from lab.certificates import Authority, Credentials, Subject
from tests.support.apiserver import kubectl
from tests.support.charts import CHARTS
from tests.support.manager import Namespace, eventually, free_port
from tests.support.rights import Account

GROUP = "coil-webhooks"
API = "rbac.authorization.k8s.io"
ADMISSION = "admissionregistration.k8s.io/v1"
KINDS = ("accounting", "controller", "loginset", "nodeset", "restapi", "token")


def grant(server: ApiServer) -> None:
    """Give everyone in `GROUP` what the chart gives the webhook."""
    files = sorted((CHARTS / "slurm-operator" / "rules").glob("webhook*.yaml"))
    rules = [rule for file in files for rule in yaml.safe_load(file.read_text())]
    role = {"apiVersion": f"{API}/v1", "kind": "ClusterRole", "metadata": {"name": GROUP}, "rules": rules}
    binding = {
        "apiVersion": f"{API}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": GROUP},
        "subjects": [{"kind": "Group", "name": GROUP, "apiGroup": API}],
        "roleRef": {"kind": "ClusterRole", "name": GROUP, "apiGroup": API},
    }
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [role, binding]})
    kubectl(server, "apply", "--server-side", "-f", "-", stdin=text)


class Webhook:
    """A running webhook on loopback; ends with its block.

    Args:
        server: The API server that it reads from.
        hosts: Names and addresses in its certificate.
        flags: More flags.
        group: The group of its user; another than `GROUP` has no rights.
        account: The service account that it works as, instead of a user of its own.
    """

    def __init__(
        self,
        server: ApiServer,
        *flags: str,
        hosts: tuple[str, ...] = ("127.0.0.1",),
        group: str = GROUP,
        account: Account | None = None,
    ) -> None:
        self._server, self._hosts, self._group, self._account = server, hosts, group, account
        self.port, self.health_port, self.metrics_port = free_port(), free_port(), free_port()
        self._folder = tempfile.TemporaryDirectory(prefix="coil-webhook-")
        self.certificates = Path(self._folder.name) / "certificates"
        self._log = Path(self._folder.name) / "log"
        self.authority = Authority.create("coil-test-webhook")
        self._flags = [
            f"--server-addr=0.0.0.0:{self.port}",
            f"--cert-dir={self.certificates}",
            f"--health-addr=127.0.0.1:{self.health_port}",
            f"--metrics-addr=127.0.0.1:{self.metrics_port}",
            "--zap-log-level=debug",
            *flags,
        ]

    def __enter__(self) -> Self:
        folder = Path(self._folder.name)
        kubeconfig = folder / "kubeconfig"
        if self._account is None:
            user = Subject(f"webhook-{uuid.uuid4().hex[:8]}", [self._group])
            self._server.plane.write_kubeconfig(kubeconfig, user)
        else:
            self._account.write_kubeconfig(self._server, kubeconfig)
        self.certificates.mkdir()
        command = [sys.executable, "-m", "coil.service.webhook", f"--kubeconfig={kubeconfig}", *self._flags]
        with self._log.open("w") as log:
            self.process = subprocess.Popen(command, stderr=log, env={**os.environ})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.end(signal.SIGKILL)
        if error is not None:
            sys.stderr.write(self._log.read_text()[-8000:])
        self._folder.cleanup()

    def end(self, number: signal.Signals, within: float = 20) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(within)

    def certify(self, authority: Authority | None = None) -> None:
        """Write a certificate, as the kubelet writes a Secret: both files change at once."""
        self.write((authority or self.authority).issue(Subject("webhook", hosts=list(self._hosts))))

    def write(self, credentials: Credentials) -> None:
        """Write a certificate and key over those that are there."""
        name = f"..{uuid.uuid4().hex}"
        credentials.write(self.certificates / name, "tls")
        for file in ("tls.crt", "tls.key"):
            link = self.certificates / f"{file}.new"
            link.symlink_to(Path(name) / file)
            link.replace(self.certificates / file)

    def start(self) -> Self:
        """Write a certificate and wait until it serves."""
        self.certify()
        eventually(lambda: self.status(self.health_port, "/readyz") == 200, what="the webhook is ready")
        return self

    def status(self, port: int, path: str) -> int:
        """HTTP status of one of its small servers, 0 without an answer."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as reply:
                return int(reply.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0

    def metrics(self) -> str:
        """Its series."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/metrics", timeout=5) as reply:
            return str(reply.read().decode())

    def entries(self) -> list[dict[str, Any]]:
        """What it logged so far."""
        return [json.loads(line) for line in self._log.read_text().splitlines() if line.endswith("}")]


def validating(webhook: Webhook, space: Namespace, version: str = "v1beta1") -> list[dict[str, Any]]:
    """The validating webhooks as the chart registers them, for one namespace and by URL."""
    return [
        _hook(
            webhook,
            space,
            f"{kind}-v1beta1.kb.io",
            f"/validate-slinky-slurm-net-v1beta1-{kind}",
            admissionReviewVersions=[version],
            failurePolicy="Fail",
            rules=[
                {
                    "apiGroups": ["slinky.slurm.net"],
                    "apiVersions": ["v1beta1"],
                    "resources": [f"{kind}s"],
                    "operations": ["CREATE", "UPDATE"],
                    "scope": "Namespaced",
                }
            ],
            sideEffects="None",
        )
        for kind in KINDS
    ]


def binding(webhook: Webhook, space: Namespace) -> list[dict[str, Any]]:
    """The webhook on pods/binding as the chart registers it, for one namespace and by URL."""
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods/binding"], "operations": ["CREATE"]}
    return [
        _hook(
            webhook,
            space,
            "podsbinding-v1.kb.io",
            "/mutate--v1-binding",
            admissionReviewVersions=["v1"],
            failurePolicy="Ignore",
            rules=[rule],
            sideEffects="NoneOnDryRun",
        )
    ]


def _hook(webhook: Webhook, space: Namespace, name: str, path: str, **members: Any) -> dict[str, Any]:
    bundle = base64.b64encode(webhook.authority.credentials.certificate).decode()
    return {
        "name": name,
        "clientConfig": {"url": f"https://127.0.0.1:{webhook.port}{path}", "caBundle": bundle},
        "matchPolicy": "Equivalent",
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": space.name}},
        "timeoutSeconds": 10,
        **members,
    }


class Registration:
    """A webhook configuration on the API server, for as long as its block lasts."""

    def __init__(self, server: ApiServer, kind: str, name: str) -> None:
        self._server, self.kind, self.name = server, kind, name

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        kubectl(self._server, "delete", self.kind, self.name, "--ignore-not-found")

    def apply(self, hooks: list[dict[str, Any]]) -> None:
        """Register these webhooks in place of those before."""
        metadata = {"name": self.name}
        document = {"apiVersion": ADMISSION, "kind": self.kind, "metadata": metadata, "webhooks": hooks}
        text = json.dumps(document)
        kubectl(self._server, "apply", "--server-side", "--force-conflicts", "-f", "-", stdin=text)


def attempt(server: ApiServer, *arguments: str, stdin: str = "") -> tuple[int, str]:
    """Run kubectl; its exit code, and all that it printed."""
    command = [str(binaries.binary("kubectl")), f"--kubeconfig={server.kubeconfig}", *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=60)
    return done.returncode, done.stdout + done.stderr


def send(server: ApiServer, space: Namespace, document: dict[str, Any], *flags: str) -> tuple[int, str]:
    """Create or change an object; exit code, and all that kubectl printed."""
    return attempt(server, "-n", space.name, "apply", "-f", "-", *flags, stdin=json.dumps(document))

"""The manager as a process of its own, with the rights that the chart gives it, on a real API server.

The tests in tests/apiserver share one server by the argument `managed_server`. It runs the built-in
controllers too, but no scheduler and no kubelet: pods stay Pending. Each test works in namespaces of its own
and gives them to its manager, so that managers do not meet.
"""

import contextlib
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import pytest
import yaml

from coil.api import crd
from coil.api.kinds import KINDS
from lab import binaries
from lab.apiserver import ApiServer
from lab.certificates import Subject
from tests.support.apiserver import kubectl, writes

T = TypeVar("T")

GROUP = "coil-managers"
RULES = Path(__file__).parents[2] / "charts" / "slurm-operator" / "rules"


NODES_STAY = ("--node-monitor-grace-period=1h", "--node-startup-grace-period=1h")
"""No kubelet says that a test's node is alive; on a slow machine its pods would be evicted meanwhile."""


@pytest.fixture(scope="session")
def managed_server() -> Iterator[ApiServer]:
    """API server and built-in controllers, with our CRDs and the operator's role."""
    with new_managed_server() as server:
        yield server


@contextlib.contextmanager
def new_managed_server() -> Iterator[ApiServer]:
    """The same for one's own, such as for tests that make Kubernetes nodes."""
    if not all(binaries.COMPONENTS[name].built for name in ("etcd", "kubernetes")):
        pytest.skip("the Kubernetes binaries are not built: run `make lab-build`")
    with ApiServer(controller_manager=True, controller_manager_extra=NODES_STAY) as server:
        kubectl(server, "apply", "-f", "-", stdin=crd.to_yaml(crd.all_definitions().values()))
        names = [f"crd/{kind.crd_name}" for kind in KINDS]
        kubectl(server, "wait", "--for=condition=Established", "--timeout=30s", *names)
        kubectl(server, "apply", "-f", "-", stdin=json.dumps(_role()))
        yield server


def _role() -> dict[str, Any]:
    """The chart's rules, for everyone in `GROUP`."""
    rules = [
        rule for file in ("operator.yaml", "operator-cluster.yaml", "reviews.yaml") for rule in _rules(file)
    ]
    api = "rbac.authorization.k8s.io"
    role = {
        "apiVersion": f"{api}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": GROUP},
        "rules": rules,
    }
    binding = {
        "apiVersion": f"{api}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": GROUP},
        "subjects": [{"kind": "Group", "name": GROUP, "apiGroup": api}],
        "roleRef": {"kind": "ClusterRole", "name": GROUP, "apiGroup": api},
    }
    return {"apiVersion": "v1", "kind": "List", "items": [role, binding]}


def _rules(file: str) -> list[dict[str, Any]]:
    return yaml.safe_load((RULES / file).read_text())


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Manager:
    """A running manager; ends with its block.

    Args:
        server: The API server that it works on.
        flags: More flags.
        namespaces: Those that it watches; none means all.
        kubeconfig: Of whom it works as; else of a user of its own with all of the chart's rights.
    """

    def __init__(
        self,
        server: ApiServer,
        *flags: str,
        namespaces: Sequence[str] = (),
        kubeconfig: Path | None = None,
    ) -> None:
        self._server = server
        self._kubeconfig = kubeconfig
        self.user = f"manager-{uuid.uuid4().hex[:8]}"
        self.health_port, self.metrics_port = free_port(), free_port()
        self._folder = tempfile.TemporaryDirectory(prefix="coil-manager-")
        self._log = Path(self._folder.name) / "log"
        self._flags = [
            f"--health-addr=127.0.0.1:{self.health_port}",
            f"--metrics-addr=127.0.0.1:{self.metrics_port}",
            "--zap-log-level=debug",
            *([f"--namespaces={','.join(namespaces)}"] if namespaces else []),
            *flags,
        ]

    def add_flags(self, flags: Iterable[str]) -> None:
        """Flags that win over those before, until it is started."""
        self._flags += flags

    def __enter__(self) -> Self:
        kubeconfig = self._kubeconfig
        if kubeconfig is None:
            kubeconfig = Path(self._folder.name) / "kubeconfig"
            self._server.plane.write_kubeconfig(kubeconfig, Subject(self.user, [GROUP]))
        command = [sys.executable, "-m", "coil.service.manager", f"--kubeconfig={kubeconfig}", *self._flags]
        with self._log.open("w") as log:
            self.process = subprocess.Popen(command, stderr=log, env={**os.environ, "DEBUG": ""})
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.end(signal.SIGTERM)
        if error is not None:
            sys.stderr.write(self._log.read_text()[-8000:])
        self._folder.cleanup()

    def end(self, number: signal.Signals, within: float = 30) -> int:
        """Send a signal and return the exit code."""
        self.process.send_signal(number)
        return self.process.wait(within)

    def entries(self) -> list[dict[str, Any]]:
        """What it logged so far."""
        return [json.loads(line) for line in self._log.read_text().splitlines() if line.endswith("}")]

    def logged(self, message: str) -> bool:
        """Whether it logged this."""
        return any(entry["msg"] == message for entry in self.entries())

    def wait_working(self, within: float = 40) -> None:
        """Wait until its workers have begun."""
        eventually(lambda: self.logged("workers start"), within=within, what="the workers begin")

    def writes(self) -> list[str]:
        """Its write requests so far, those for its Lease left out."""
        return [line for line in writes(self._server, self.user) if "/leases" not in line]

    def get(self, port: int, path: str) -> str:
        """The answer of one of its HTTP servers."""
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as reply:
            return reply.read().decode()

    def scrape(self, token: str | None) -> tuple[int, str]:
        """Status and text of the metrics over HTTPS."""
        return scrape(self.metrics_port, token)


def scrape(port: int, token: str | None) -> tuple[int, str]:
    """Status and text of metrics on this machine over HTTPS, whose certificate nobody vouches for."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(f"https://127.0.0.1:{port}/metrics", headers=headers)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(request, timeout=10, context=context) as reply:  # noqa: S310 - https
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, ""


def eventually(check: Callable[[], T | None], *, within: float = 30, what: str) -> T:
    """Ask again and again until the answer is true; AssertionError after `within` seconds."""
    deadline = time.monotonic() + within
    while not (answer := check()):
        assert time.monotonic() < deadline, f"not within {within:g} s: {what}; last answer {answer!r}"
        time.sleep(0.05)
    return answer


class Namespace:
    """What a person sees and does in one namespace."""

    def __init__(self, server: ApiServer, name: str = "") -> None:
        self._server = server
        self.name = name or f"test-{uuid.uuid4().hex[:8]}"
        kubectl(server, "create", "namespace", self.name)

    def apply(self, *objects: dict[str, Any]) -> None:
        """Create objects, or replace what they say."""
        items = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        kubectl(self._server, "apply", "--server-side", "-n", self.name, "-f", "-", stdin=json.dumps(items))

    def kubectl(self, *arguments: str) -> str:
        """Run kubectl in the namespace."""
        return kubectl(self._server, "-n", self.name, *arguments)

    def get(self, kind: str, name: str) -> dict[str, Any] | None:
        """One object, None when it is not there."""
        text = self.kubectl("get", kind, name, "--ignore-not-found", "-o", "json")
        return json.loads(text) if text else None

    def objects(self, kinds: str) -> list[dict[str, Any]]:
        """All objects of the kinds, comma-separated."""
        return json.loads(self.kubectl("get", kinds, "-o", "json"))["items"]

    def condition(self, kind: str, name: str, condition: str) -> tuple[str, str, str] | None:
        """Status, reason and message of a condition."""
        found = self.get(kind, name) or {}
        for item in found.get("status", {}).get("conditions", []):
            if item["type"] == condition:
                return item["status"], item["reason"], item["message"]
        return None

    def wait_condition(self, kind: str, name: str, wanted: str, within: float = 30) -> str:
        """Wait for `Type=Status/Reason`, such as `Reconciled=False/SecretMissing`; give the message."""
        what, _, rest = wanted.partition("=")
        status, _, reason = rest.partition("/")

        def message() -> str | None:
            found = self.condition(kind, name, what)
            return found[2] if found and found[0] == status and reason in ("", found[1]) else None

        return eventually(message, within=within, what=f"{kind} {name} has {wanted}")

    def events(self, kind: str, name: str) -> list[tuple[str, str, str]]:
        """Type, reason and note of the events about an object."""
        found = self.objects("events.events.k8s.io")
        about = [event for event in found if event["regarding"].get("name") == name]
        return [
            (event["type"], event["reason"], event["note"])
            for event in about
            if event["regarding"]["kind"] == kind
        ]


def secret(name: str, **data: str) -> dict[str, Any]:
    """A Secret; `slurm_key="x"` becomes the key `slurm.key`."""
    text = {key.replace("_", "."): value for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": text}


def config_map(name: str, data: dict[str, str]) -> dict[str, Any]:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def ours(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    """One of our kinds."""
    api_version = "slinky.slurm.net/v1beta1"
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def controller(name: str, **spec: Any) -> dict[str, Any]:
    """A Controller that needs the Secret `keys` and no claim."""
    wanted: dict[str, Any] = {
        "slurmctld": {"image": "registry.example/slurmctld:1"},
        "logfile": {"image": "registry.example/tools:1"},
        "slurmKeyRef": {"name": "keys", "key": "slurm.key"},
        "jwtKeyRef": {"name": "keys", "key": "jwt.key"},
        "persistence": {"enabled": False},
    }
    return ours("Controller", name, **{**wanted, **spec})


KEYS = secret("keys", slurm_key="an auth key", jwt_key="a token key")

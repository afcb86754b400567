"""Both charts on a real API server, with the operator at work as the chart's own service account.

There is no kubelet: pods stay Pending unless a test says that they run. The operator of the Deployment is
such a pod; the one that works is a process on this machine.
"""

import json
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lab.apiserver import ApiServer
from tests.support.apiserver import kubectl
from tests.support.charts import CHARTS, helm
from tests.support.manager import Manager, Namespace
from tests.support.rights import Account

OPERATOR = "slurm-operator"


class Release:
    """A Helm release in a namespace of its own; it goes with its block."""

    def __init__(self, server: ApiServer, chart: str, name: str = "", *values: str) -> None:
        self.server, self.chart, self.values = server, chart, values
        self.space = Namespace(server)
        self.name = name or f"r-{self.space.name}"

    def __enter__(self) -> Self:
        self.upgrade()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._helm("uninstall", self.name)

    def upgrade(self, *values: str) -> None:
        """Install, or upgrade to the values of the release and these."""
        sets = [word for value in (*self.values, *values) for word in ("--set", value)]
        self._helm("upgrade", "--install", self.name, str(CHARTS / self.chart), *sets)

    def _helm(self, *arguments: str) -> None:
        command = [str(helm()), f"--kubeconfig={self.server.kubeconfig}", "--namespace", self.space.name]
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    @property
    def account(self) -> Account:
        """The operator's account, of a release of its chart."""
        return Account(self.space.name, f"{self.name}-{OPERATOR}")

    @property
    def webhook_account(self) -> Account:
        """The webhook's account."""
        return Account(self.space.name, f"{OPERATOR}-webhook")


class Working:
    """The operator of a release as a process, with the rights of its account and no other."""

    def __init__(self, release: Release, *flags: str, namespaces: tuple[str, ...] = ()) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="coil-account-")
        path = Path(self._folder.name, "kubeconfig")
        config = release.account.write_kubeconfig(release.server, path)
        lease = ("--leader-elect", f"--leader-elect-namespace={release.space.name}")
        self.manager = Manager(release.server, *lease, *flags, namespaces=namespaces, kubeconfig=config)
        self.manager.user = release.account.user

    def __enter__(self) -> Manager:
        return self.manager.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.manager.__exit__(kind, error, trace)
        self._folder.cleanup()


def forbidden(series: str) -> list[str]:
    """Of a process' metrics, the requests that the API server refused with 403."""
    lines = series.splitlines()
    return [line for line in lines if line.startswith("rest_client_requests_total") and 'code="403"' in line]


def say_ready(space: Namespace, pod: str) -> None:
    """Say that a pod runs and is ready, as a kubelet would."""
    ready = {"type": "Ready", "status": "True"}
    status = json.dumps({"status": {"phase": "Running", "conditions": [ready]}})
    space.kubectl("patch", "pod", pod, "--subresource=status", "--type=strategic", "-p", status)


def pods(server: ApiServer, *spaces: str) -> list[dict[str, Any]]:
    """All pods of the namespaces."""
    found = [json.loads(kubectl(server, "-n", space, "get", "pods", "-o", "json")) for space in spaces]
    return [pod for each in found for pod in each["items"]]

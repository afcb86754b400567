"""A kube-apiserver of one's own: etcd and kube-apiserver on free loopback ports, ready in about 3 s."""

import contextlib
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from lab import binaries, controlplane
from lab.controlplane import ControlPlane, Ports
from lab.errors import LabError
from lab.processes import start, tail, wait_for

_LOOPBACK = "127.0.0.1"
_START_SECONDS = 60.0


class ApiServer:
    """A real API server without nodes, for tests.

    Usage::

        with ApiServer() as server:
            client = Client(server.kubeconfig)

    Builds the binaries when the cache lacks them (minutes). The processes end with the block, or with the
    Python process that started them, however that ends.

    Args:
        controller_manager: run the built-in controllers too (garbage collection, service accounts, ...).
        scheduler: run the scheduler too.
        apiserver_extra: more flags for kube-apiserver.
        controller_manager_extra: more flags for kube-controller-manager.
    """

    def __init__(
        self,
        *,
        controller_manager: bool = False,
        scheduler: bool = False,
        apiserver_extra: Sequence[str] = (),
        controller_manager_extra: Sequence[str] = (),
    ) -> None:
        self._stack = contextlib.ExitStack()
        self._with_controller_manager = controller_manager
        self._with_scheduler = scheduler
        self._apiserver_extra = apiserver_extra
        self._controller_manager_extra = controller_manager_extra
        self._plane: ControlPlane | None = None

    @property
    def plane(self) -> ControlPlane:
        """The addresses and files of the running server."""
        if self._plane is None:
            raise LabError("the API server runs inside its `with` block only")
        return self._plane

    @property
    def url(self) -> str:
        """The URL of the server."""
        return self.plane.url

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig that may do everything."""
        return self.plane.admin_conf

    @property
    def audit_log(self) -> Path:
        """Every write request as one JSON line."""
        return self.plane.audit_log

    def __enter__(self) -> Self:
        """Start the processes and wait until the server is ready."""
        binaries.ensure("etcd", "kubernetes")
        with contextlib.ExitStack() as stack:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="coil-apiserver-")))
            self._plane = plane = self._layout(directory)
            controlplane.prepare(plane)
            etcd = self._start(stack, controlplane.etcd(plane))
            server = self._start(stack, controlplane.apiserver(plane))
            wait_for(
                "kube-apiserver",
                lambda: controlplane.ready(plane),
                _START_SECONDS,
                lambda: etcd.ended() or server.ended(),
            )
            if self._with_controller_manager:
                self._start(stack, controlplane.controller_manager(plane))
            if self._with_scheduler:
                self._start(stack, controlplane.scheduler(plane))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the processes and delete what they wrote."""
        self._plane = None
        self._stack.close()

    def _layout(self, directory: Path) -> ControlPlane:
        extra = ["--endpoint-reconciler-type=none"]
        if not self._with_controller_manager:
            # Nobody makes the service account that this plugin wants in each pod.
            extra.append("--disable-admission-plugins=ServiceAccount")
        return ControlPlane(
            directory=directory,
            data=directory / "etcd",
            address=_LOOPBACK,
            ports=Ports(*free_ports(5)),
            apiserver_extra=[*extra, *self._apiserver_extra],
            controller_manager_extra=self._controller_manager_extra,
        )

    def _start(self, stack: contextlib.ExitStack, argv: list[str]) -> "_Child":
        log = self.plane.directory / f"{Path(argv[0]).name}.log"
        # A test run that is killed must not leave servers behind: the kernel ends them with their parent.
        child = _Child(start(["setpriv", "--pdeathsig", "KILL", *argv], log), log)
        stack.callback(child.kill)
        return child


@dataclass(frozen=True)
class _Child:
    process: subprocess.Popen[bytes]
    log: Path

    def kill(self) -> None:
        """End the process; its data goes too, so there is nothing to finish."""
        self.process.kill()
        self.process.wait()

    def ended(self) -> str | None:
        """Say why the process is no longer there, or None while it is."""
        if self.process.poll() is None:
            return None
        return f"{self.log.stem} ended with exit code {self.process.returncode}:\n{tail(self.log)}"


def free_ports(count: int) -> list[int]:
    """Return loopback ports that nobody listens on just now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((_LOOPBACK, 0))
        return [int(one.getsockname()[1]) for one in sockets]

"""Kubernetes and its companions as binaries, built from pinned Go modules into the user's cache.

Each component is a folder below `lab/go` with a `go.mod` and `go.sum`; one module for each because their
dependency versions clash. A binary lives in a folder named by the hash of its lock, so a changed lock is a
new build and an unchanged one never builds again.
"""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from lab import paths
from lab.errors import LabError
from lab.progress import say, step

_VERSION = "k8s.io/component-base/version"
_KEDA = "github.com/kedacore/keda/v2"
# A sign of life on builds that take minutes.
_REPORT_SECONDS = 15.0


@dataclass(frozen=True)
class Component:
    """A Go module of the lab: the programs built from it and the linker variables they are given."""

    name: str
    programs: Mapping[str, str]
    variables: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def module(self) -> Path:
        """The folder with the pinned go.mod and go.sum."""
        return paths.GO_MODULES / self.name

    @property
    def ldflags(self) -> str:
        """Linker flags: no debug information, and the variables."""
        return " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in self.variables.items())])

    @property
    def folder(self) -> Path:
        """Where the built programs are, named by what they are made from."""
        digest = hashlib.sha256(self.ldflags.encode())
        for source in sorted(self.module.iterdir()):
            digest.update(source.read_bytes())
        return paths.cache() / "bin" / f"{self.name}-{digest.hexdigest()[:16]}"

    @property
    def built(self) -> bool:
        """True when every program is in the cache."""
        return all((self.folder / program).exists() for program in self.programs)


def _kubernetes() -> Component:
    names = (
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kubelet",
        "kube-proxy",
        "kubectl",
    )
    version = {"gitVersion": "v1.36.3", "gitMajor": "1", "gitMinor": "36", "gitTreeState": "clean"}
    return Component(
        name="kubernetes",
        programs={name: f"k8s.io/kubernetes/cmd/{name}" for name in names},
        variables={f"{_VERSION}.{name}": value for name, value in version.items()},
    )


COMPONENTS: Mapping[str, Component] = {
    component.name: component
    for component in (
        Component("etcd", {"etcd": "go.etcd.io/etcd/server/v3"}),
        _kubernetes(),
        Component("coredns", {"coredns": "coil.lab/coredns"}),
        Component("pause", {"pause": "coil.lab/pause"}),
        Component("helm", {"helm": "helm.sh/helm/v3/cmd/helm"}),
        Component("helm4", {"helm4": "helm.sh/helm/v4/cmd/helm"}),
        Component("kwok", {"kwok": "sigs.k8s.io/kwok/cmd/kwok"}),
        Component("keda", {"keda": f"{_KEDA}/cmd/operator", "keda-adapter": f"{_KEDA}/cmd/adapter"}),
        Component("deviceplugin", {"deviceplugin": "coil.lab/deviceplugin"}),
    )
}

# What a cluster, its tests and the charts need; kwok is for clusters of simulated nodes only, KEDA (ten
# minutes of a processor) for the tests of autoscaling, the device plugin for those with stand-in GPUs,
# Helm 4 for `make helm4`.
DEFAULT = ("pause", "etcd", "kubernetes", "coredns", "helm")


def binary(name: str) -> Path:
    """Return the path of a built program.

    Raises:
        LabError: it is not in the cache, or no component makes it.
    """
    for component in COMPONENTS.values():
        if name in component.programs:
            path = component.folder / name
            if path.exists():
                return path
            raise LabError(f"{name} is not built: run `python -m lab build {component.name}`")
    raise LabError(f"no component of the lab makes a program named {name}")


def ensure(*names: str) -> None:
    """Build the named components that the cache does not have; other processes wait for the same build.

    Raises:
        LabError: Go is missing or the build failed.
    """
    missing = [component for name in names if not (component := COMPONENTS[name]).built]
    if missing and shutil.which("go") is None:
        raise LabError("Go is not on PATH: install Go 1.26 or newer to build Kubernetes from its modules")
    with ThreadPoolExecutor(max_workers=1) as pool:
        # The network fetches the next module while the processors compile the one before.
        downloads = [pool.submit(_download, component) for component in missing]
        for component, download in zip(missing, downloads, strict=True):
            download.result()
            with _only_one(component):
                if not component.built:
                    _build(component)


@contextmanager
def _only_one(component: Component) -> Generator[None]:
    component.folder.parent.mkdir(parents=True, exist_ok=True)
    with component.folder.with_suffix(".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"{component.name}: waiting for the build of another process")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _download(component: Component) -> None:
    """Fetch the sources that a build needs; what fails here is reported by the build."""
    command = ["go", "list", "-deps", "-f", "", *component.programs.values()]
    subprocess.run(command, cwd=component.module, env=_environment(), capture_output=True, check=False)


def _environment() -> dict[str, str]:
    return os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false"}


def _build(component: Component) -> None:
    say(f"{component.name}: building {', '.join(component.programs)}")
    with (
        step(f"{component.name}: built"),
        tempfile.TemporaryDirectory(dir=component.folder.parent, prefix=".building-") as scratch,
    ):
        _go_build(component, Path(scratch))
        component.folder.mkdir(exist_ok=True)
        for name, package in component.programs.items():
            (Path(scratch) / _produced(package)).rename(component.folder / name)


def _produced(package: str) -> str:
    """Return the name that `go build` gives the program of a package (a version suffix does not count)."""
    return re.sub(r"/v\d+$", "", package).rsplit("/", 1)[-1]


def _go_build(component: Component, output: Path) -> None:
    command = ["go", "build", "-v", "-trimpath", "-ldflags", component.ldflags, "-o", f"{output}/"]
    process = subprocess.Popen(
        [*command, *component.programs.values()],
        cwd=component.module,
        env=_environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        tail = _watch(component.name, process)
    if process.returncode:
        raise LabError(
            f"go build of {component.name} in {component.module} failed:\n" + "\n".join(tail[-20:])
        )


def _watch(name: str, process: subprocess.Popen[str]) -> list[str]:
    """Follow the lines of `go build -v`, one for each package; return what is worth showing on failure."""
    begin = reported = time.monotonic()
    counts = {"downloaded": 0, "compiled": 0}
    others: list[str] = []
    for line in process.stderr or ():
        if line.startswith("go: downloading"):
            counts["downloaded"] += 1
        elif re.fullmatch(r"[\w./~-]+\n", line):
            counts["compiled"] += 1
        else:
            others.append(line.rstrip())
        if time.monotonic() - reported > _REPORT_SECONDS:
            reported = time.monotonic()
            done = ", ".join(f"{count} packages {what}" for what, count in counts.items())
            say(f"{name}: {done} after {reported - begin:.0f} s")
    return others

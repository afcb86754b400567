"""Binaries in the cache are known by what they are made from."""

from pathlib import Path

import pytest

from lab import binaries, paths
from lab.binaries import Component
from lab.errors import LabError


@pytest.fixture
def component(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Component:
    monkeypatch.setattr(paths, "GO_MODULES", tmp_path / "go")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "go" / "tool").mkdir(parents=True)
    (tmp_path / "go" / "tool" / "go.mod").write_text("module tool\n")
    return Component("tool", {"tool": "example/tool"})


def test_another_lock_or_other_linker_variables_are_another_build(component: Component) -> None:
    first = component.folder
    assert first == component.folder
    assert Component("tool", component.programs, {"version": "1"}).folder != first

    (component.module / "go.sum").write_text("example v1 h1:abc\n")

    assert component.folder != first


def test_a_program_that_is_not_built_says_how_to_build_it(
    component: Component, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "COMPONENTS", {"tool": component})

    with pytest.raises(LabError, match="python -m lab build tool"):
        binaries.binary("tool")
    with pytest.raises(LabError, match="no component"):
        binaries.binary("other")


@pytest.mark.parametrize(
    ("package", "name"), [("go.etcd.io/etcd/server/v3", "server"), ("helm.sh/helm/v3/cmd/helm", "helm")]
)
def test_go_names_a_program_by_its_package(package: str, name: str) -> None:
    assert binaries._produced(package) == name  # pyright: ignore[reportPrivateUsage]


def test_every_component_of_the_lab_is_pinned() -> None:
    for component in binaries.COMPONENTS.values():
        assert (component.module / "go.mod").exists(), component.name

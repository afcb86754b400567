"""Derived names (spec: control-plane 2.5 and 2.6, nodeset 4)."""

import msgspec
import pytest

from coil.api import names
from coil.api.token import Token


def test_derived_object_names() -> None:
    assert names.controller("c") == "c-controller"
    assert names.controller_internal("c") == "c-controller-internal"
    assert names.controller_config("c") == "c-config"
    assert names.controller_pod("c", 1) == "c-controller-1"
    assert names.accounting("c") == "c-accounting"
    assert names.restapi("c") == "c-restapi"
    assert names.loginset("l") == "l"
    assert names.ssh_config("l") == "l-ssh-config"
    assert names.ssh_host_keys("l") == "l-ssh-host-keys"
    assert names.worker_service("c") == "slurm-workers-c"
    assert names.worker_budget("c") == "slurm-workers-pdb-c"
    assert names.reservation("n") == "SlurmOperatorMaint-n"
    assert names.claim("data", "gpu-0") == "data-gpu-0"


def test_revision_name_is_cut() -> None:
    assert names.revision("n", "abc") == "n-abc"
    assert names.revision("n" * 250, "abc") == "n" * 223 + "-abc"


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"username": "u"}, ("t-jwt-u", "SLURM_JWT")),
        ({"username": "u", "secretRef": {"name": "s", "key": "k"}}, ("s", "k")),
        ({"username": "u", "secretRef": {"key": "k"}}, ("t-jwt-u", "k")),
    ],
)
def test_token_secret(spec: dict[str, object], wanted: tuple[str, str]) -> None:
    assert names.token_secret(msgspec.convert({"metadata": {"name": "t"}, "spec": spec}, Token)) == wanted


@pytest.mark.parametrize(
    ("pod", "wanted"),
    [
        ("foo-007", ("foo", 7)),
        ("foo-bar-12", ("foo-bar", 12)),
        ("foo", ("", -1)),
        ("foo-1x", ("", -1)),
        ("foo-99999999999", ("foo", -1)),
        ("foo-2147483647", ("foo", 2147483647)),
        ("foo-3\n", ("", -1)),
    ],
)
def test_ordinal_of_a_pod(pod: str, wanted: tuple[str, int]) -> None:
    assert names.split_ordinal(pod) == wanted


@pytest.mark.parametrize(("digits", "wanted"), [(0, "gpu-3"), (3, "gpu-003"), (1, "gpu-3")])
def test_worker_pod(digits: int, wanted: str) -> None:
    assert names.worker_pod("gpu", 3, digits) == wanted


def test_wide_ordinals_are_not_cut() -> None:
    assert names.padded(1234, 3) == "1234"


@pytest.mark.parametrize(
    ("text", "domain"),
    [
        ("search ns.svc.corp.example svc.corp.example corp.example\nnameserver 10.0.0.1", "corp.example"),
        ("search a b\nsearch x svc.second.example", "second.example"),
        ("", "cluster.local"),
        ("search", "cluster.local"),
        ("search svc.", "cluster.local"),
        ("nameserver svc.nope\n search svc.indented", "cluster.local"),
    ],
)
def test_cluster_domain(text: str, domain: str) -> None:
    assert names.cluster_domain(text) == domain


def test_dns_names() -> None:
    assert names.short_dns("s", "ns") == "s.ns"
    assert names.full_dns("s", "ns", "cluster.local") == "s.ns.svc.cluster.local"


def test_labels_and_selector() -> None:
    labels = names.operator_labels("slurmd", "gpu", "worker")
    assert labels == {
        "app.kubernetes.io/name": "slurmd",
        "app.kubernetes.io/instance": "gpu",
        "app.kubernetes.io/component": "worker",
    }
    selector = names.selector_text("slurmd", "gpu")
    assert selector == "app.kubernetes.io/instance=gpu,app.kubernetes.io/name=slurmd"

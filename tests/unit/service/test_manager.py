"""Claims about what the kinds learn of the command line; the process is tried on a real API server."""

import pytest

from coil.service import manager, webhook
from coil.service.flags import parse
from coil.service.manager import options
from coil.service.settings import Settings


def test_operator_and_webhook_do_not_share_a_lease() -> None:
    """Field case CTL-14: both may run in one namespace."""
    assert manager.LEASE != webhook.LEASE


def test_every_kind_gets_its_workers() -> None:
    argv = ["--controller-workers=4", "--slurmclient-workers=2", "--propagated-node-conditions=A, B"]
    found = options(parse(Settings, argv))
    assert found.workers == {
        "accounting": 1,
        "controller": 4,
        "loginset": 1,
        "nodeset": 1,
        "restapi": 1,
        "slurmclient": 2,
        "token": 1,
    }
    assert found.propagated_node_conditions == ("A", "B")


def test_debug_reaches_the_slurm_client_through_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEBUG", "1")
    assert options(Settings()).environment["DEBUG"] == "1"

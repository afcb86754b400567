"""Services from a user's wishes and the daemon's port (spec: control-plane 3.5)."""

import msgspec
import pytest

from coil.api.template import ServiceTemplate
from coil.build.errors import BuildError
from coil.build.service import service
from coil.support.objects import JsonObject


def _service(**wanted: object) -> JsonObject:
    template = msgspec.convert(wanted, ServiceTemplate)
    return service({"name": "a"}, template, "slurmctld", 6817, {"app": "x"})["spec"]


def test_external_addresses_are_dropped() -> None:
    """Field case INJ-04 (CVE-2020-8554)."""
    assert "externalIPs" not in _service(spec={"type": "NodePort", "externalIPs": ["192.0.2.53"]})


def test_the_port_is_added_to_those_of_the_user() -> None:
    spec = _service(port=7000, nodePort=31000, spec={"ports": [{"name": "x", "port": 9}]})
    assert spec["ports"] == [
        {"name": "x", "port": 9},
        {"name": "slurmctld", "port": 7000, "protocol": "TCP", "targetPort": "slurmctld", "nodePort": 31000},
    ]


def test_the_operators_selector_wins() -> None:
    assert _service(spec={"selector": {"app": "mine", "tier": "t"}})["selector"] == {"app": "x", "tier": "t"}


@pytest.mark.parametrize("port", [{"name": "slurmctld", "port": 1}, {"name": "other", "port": 6817}])
def test_clashing_ports_are_told(port: dict[str, object]) -> None:
    with pytest.raises(BuildError, match=r"spec\.service\.spec\.ports: (name slurmctld|port 6817) occurs 2"):
        _service(spec={"ports": [port]})


def test_a_name_that_no_service_may_have_is_told() -> None:
    """Field case REG-17: no endless loop of refused objects."""
    with pytest.raises(BuildError, match="7 characters longer than Kubernetes allows"):
        service({"name": "x" * 70}, ServiceTemplate(), "slurmctld", 6817, {})


def test_a_wrong_type_is_told() -> None:
    with pytest.raises(BuildError, match=r"spec\.service\.spec\.type: is 3, must be text"):
        _service(spec={"type": 3})

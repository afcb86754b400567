"""What the corpus does not show of a RestApi's objects."""

import pytest

from coil.api import keys
from coil.build import restapi as build
from coil.build.errors import BuildError
from coil.support.objects import JsonObject
from tests.support.resources import controller, restapi


def _container(spec: dict[str, object], **cluster: object) -> JsonObject:
    deployment = build.deployment(restapi(slurmrestd=spec), controller(**cluster))
    return deployment["spec"]["template"]["spec"]["containers"][0]


def test_arguments_with_and_without_accounting() -> None:
    assert _container({"args": ["-vv"]})["args"] == ["-s", "openapi/slurmctld", "-vv", "0.0.0.0:6820"]
    assert _container({"args": ["-vv"]}, accountingRef={"name": "a"})["args"] == ["-vv", "0.0.0.0:6820"]


@pytest.mark.parametrize("parameters", ["EnableIPv6", "NoInAddrAny, enableipv6", "EnableIPv6,DisableIPv4"])
def test_slurmrestd_listens_on_all_families_where_slurm_uses_ipv6(parameters: str) -> None:
    """Slurm refuses the wildcard of IPv6 otherwise: then it listens on that of IPv4 (CTL-16)."""
    assert _container({}, extraConf=f"CommunicationParameters={parameters}")["args"][-1] == "[::]:6820"
    assert _container({}, extraConf="#CommunicationParameters=EnableIPv6")["args"][-1] == "0.0.0.0:6820"


def test_pods_of_slurmrestd_follow_the_address_family() -> None:
    marks = {
        build.deployment(restapi(), controller(extraConf=text))["metadata"]["annotations"][
            keys.ANNOTATION_POD_TEMPLATE
        ]
        for text in ("", "SlurmctldDebug=info", "CommunicationParameters=EnableIPv6")
    }
    assert len(marks) == 2


def test_a_controller_without_a_key_is_told() -> None:
    outside = controller(slurmKeyRef=None, external=True, externalConfig={"host": "h", "port": 1})
    with pytest.raises(BuildError, match="Controller slurm has no slurmKeyRef"):
        build.deployment(restapi(), outside)


def test_the_number_of_replicas_may_be_zero() -> None:
    assert build.deployment(restapi(replicas=0), controller())["spec"]["replicas"] == 0

"""Claims about the choice of the REST server (spec: control-plane 10, field case CTL-11)."""

import itertools
from typing import Any

import msgspec
import pytest

from coil.api.controller import Controller, ControllerSpec
from coil.api.meta import LocalObjectReference, ObjectMeta, SecretKeySelector
from coil.api.restapi import RestApi, RestApiSpec
from coil.kinds.slurmclient.plan import Access, MissingKeyError, access, expected_name, serving

DEMO = Controller(
    metadata=ObjectMeta(name="demo", namespace="ns"),
    spec=ControllerSpec(jwt_key_ref=SecretKeySelector(name="keys", key="jwt.key")),
)


def restapi(name: str, created: str = "2026-01-01T00:00:00Z", ref: str = "demo", ns: str = "ns") -> RestApi:
    return RestApi(
        metadata=ObjectMeta(name=name, namespace=ns, creation_timestamp=created),
        spec=RestApiSpec(controller_ref=LocalObjectReference(name=ref)),
    )


def test_the_oldest_restapi_is_used_then_the_first_by_name_in_whatever_order_they_come() -> None:
    old, young = restapi("z", "2026-01-01T00:00:00Z"), restapi("a", "2026-02-01T00:00:00Z")
    twin = restapi("y", "2026-01-01T00:00:00Z")
    for shuffled in itertools.permutations([old, young, twin]):
        assert serving(DEMO, shuffled) == twin
    assert serving(DEMO, [young, old]) == old
    assert serving(DEMO, [young]) == young


def test_restapis_of_other_clusters_and_namespaces_do_not_serve() -> None:
    assert serving(DEMO, [restapi("a", ref="other"), restapi("b", ns="elsewhere")]) is None


def test_access_is_the_service_and_the_key() -> None:
    found = access(DEMO, [restapi("api")], {"jwt.key": b"secret"}, {})
    assert found == Access("http://api-restapi.ns:6820", b"secret", "ns_demo")


def test_a_developer_may_forward_a_port() -> None:
    found = access(DEMO, [restapi("api")], {"jwt.key": b"secret"}, {"DEBUG": "1"})
    assert found == Access("http://localhost:6820", b"secret", "ns_demo")


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ({}, "ns_demo"),
        ({"cluster_name": "Larch"}, "Larch"),
        ({"extra_conf": "MaxJobCount=7"}, "ns_demo"),
        ({"extra_conf": "SlurmdDebug=info CLUSTERNAME = other"}, ""),
        ({"extra_conf": "Include /etc/slurm/more.conf"}, ""),
        ({"external": True}, ""),
        ({"external": True, "cluster_name": "site"}, "site"),
    ],
)
def test_who_must_answer_is_what_the_objects_tell(spec: dict[str, Any], name: str) -> None:
    assert expected_name(msgspec.structs.replace(DEMO, spec=ControllerSpec(**spec))) == name


def test_without_a_restapi_no_key_is_needed() -> None:
    assert access(DEMO, [], None, {}) is None


def test_a_controller_on_its_way_out_has_no_client() -> None:
    leaving = Controller(metadata=ObjectMeta(name="demo", namespace="ns", deletion_timestamp="now"))
    assert access(leaving, [restapi("api")], None, {}) is None


@pytest.mark.parametrize(
    ("secret", "complaint"),
    [
        (None, 'Secret "keys" not found; create it with key "jwt.key"'),
        ({}, 'Secret "keys" has no key "jwt.key"'),
        ({"jwt.key": b""}, 'Secret "keys" has no key "jwt.key"'),
    ],
)
def test_a_missing_key_says_what_to_create(secret: dict[str, bytes] | None, complaint: str) -> None:
    with pytest.raises(MissingKeyError, match=complaint):
        access(DEMO, [restapi("api")], secret, {})


def test_a_controller_without_a_key_reference_says_so() -> None:
    bare = Controller(metadata=ObjectMeta(name="demo", namespace="ns"))
    with pytest.raises(MissingKeyError, match="jwtKeyRef"):
        access(bare, [restapi("api")], {}, {})

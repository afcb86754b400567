"""Claims about the steps and conditions of a RestApi (spec: control-plane 7)."""

from typing import Any

import msgspec
import pytest

from coil.api.controller import Controller
from coil.api.defaults import with_defaults
from coil.api.restapi import RestApi
from coil.kinds.restapi.plan import Snapshot, conditions, steps
from coil.kinds.status import Problem
from coil.kinds.steps import Apply, Failed
from coil.kube.views import ManifestView

CONTROLLER = msgspec.convert(
    {"metadata": {"name": "alba", "namespace": "ns"}, "spec": {"slurmKeyRef": {"name": "k", "key": "k"}}},
    Controller,
)


def restapi(**spec: Any) -> RestApi:
    meta = {"name": "api", "namespace": "ns", "uid": "u", "generation": 3}
    return with_defaults(
        msgspec.convert({"metadata": meta, "spec": {"controllerRef": {"name": "alba"}, **spec}}, RestApi)
    )


def test_both_children_are_made() -> None:
    service, deployment = steps(Snapshot(restapi=restapi(), controller=CONTROLLER))
    assert isinstance(service, Apply)
    assert isinstance(deployment, Apply)
    assert (service.name, deployment.name) == ("Service", "Deployment")
    assert service.wanted["metadata"]["name"] == deployment.wanted["metadata"]["name"] == "api-restapi"


def test_without_its_controller_only_the_service_is_made() -> None:
    service, deployment = steps(Snapshot(restapi=restapi()))
    assert isinstance(service, Apply)
    assert deployment == Failed(
        name="Deployment",
        reason="ControllerMissing",
        message='Controller "alba" not found; create it or correct spec.controllerRef.name',
    )


@pytest.mark.parametrize(
    ("spec", "broken"),
    [({"service": {"spec": {"ports": "x"}}}, "Service"), ({"slurmrestd": {"args": 1}}, "Deployment")],
)
def test_what_cannot_be_built_stops_no_other_step(spec: Any, broken: str) -> None:
    for step in steps(Snapshot(restapi=restapi(**spec), controller=CONTROLLER)):
        assert isinstance(step, Failed if step.name == broken else Apply)


@pytest.mark.parametrize(
    ("status", "wanted"),
    [(None, "False"), ({}, "False"), ({"availableReplicas": 0}, "False"), ({"availableReplicas": 1}, "True")],
)
def test_it_is_available_when_a_pod_is(status: Any, wanted: str) -> None:
    deployment = None
    if status is not None:
        deployment = ManifestView(metadata=restapi().metadata, status=status)
    told = conditions(Snapshot(restapi=restapi(), deployment=deployment), [])
    assert [(condition.type, condition.status) for condition in told] == [
        ("Reconciled", "True"),
        ("Available", wanted),
    ]
    assert {condition.observed_generation for condition in told} == {3}


def test_problems_are_told() -> None:
    told = conditions(Snapshot(restapi=restapi()), [Problem("Deployment", "ControllerMissing", "gone")])
    assert (told[0].status, told[0].reason, told[0].message) == (
        "False",
        "ControllerMissing",
        "Deployment: gone",
    )

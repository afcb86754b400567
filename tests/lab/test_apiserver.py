"""The API server that the tests of other rooms stand on."""

import json

import pytest

from lab.apiserver import ApiServer
from tests.support.apiserver import api_server, kubectl, namespace, writes

__all__ = ["api_server", "namespace"]
pytestmark = pytest.mark.apiserver


def test_it_takes_objects_and_records_each_write(api_server: ApiServer, namespace: str) -> None:
    kubectl(api_server, "-n", namespace, "create", "configmap", "colours", "--from-literal=sky=blue")

    found = json.loads(kubectl(api_server, "-n", namespace, "get", "configmap", "colours", "-o", "json"))

    assert found["data"] == {"sky": "blue"}
    created = f"create /api/v1/namespaces/{namespace}/configmaps"
    assert any(write.startswith(created) for write in writes(api_server, user="coil-lab-admin"))


def test_pods_need_no_service_account_controller(api_server: ApiServer, namespace: str) -> None:
    """Without the built-in controllers nobody makes the account `default`, yet pods are accepted."""
    kubectl(api_server, "-n", namespace, "run", "idle", "--image=registry.example/idle")

    assert "idle" in kubectl(api_server, "-n", namespace, "get", "pods", "-o", "name")

"""Paths of the API, and the mistakes they must not allow."""

import pytest

from coil.kube import core
from coil.kube.errors import Invalid
from coil.kube.resource import Resource
from coil.kube.views import MetadataView


@pytest.mark.parametrize(
    ("resource", "namespace", "path"),
    [
        (core.PODS, "ns", "/api/v1/namespaces/ns/pods"),
        (core.PODS, None, "/api/v1/pods"),
        (core.NODES, None, "/api/v1/nodes"),
        (core.NODES, "ignored", "/api/v1/nodes"),
        (core.DEPLOYMENTS, "ns", "/apis/apps/v1/namespaces/ns/deployments"),
        (core.EVENTS, None, "/apis/events.k8s.io/v1/events"),
    ],
)
def test_collections(resource: Resource[MetadataView], namespace: str | None, path: str) -> None:
    assert resource.collection_path(namespace) == path


def test_objects_and_subresources() -> None:
    assert core.PODS.object_path("a", "ns") == "/api/v1/namespaces/ns/pods/a"
    assert core.PODS.object_path("a", "ns", "status") == "/api/v1/namespaces/ns/pods/a/status"
    assert core.NODES.object_path("n1") == "/api/v1/nodes/n1"


def test_an_object_without_a_name_is_not_the_collection() -> None:
    """A DELETE there would delete all objects."""
    with pytest.raises(ValueError, match="a Pod was addressed without a name"):
        core.PODS.object_path("", "ns")


@pytest.mark.parametrize("namespace", [None, ""])
def test_a_namespaced_object_needs_its_namespace(namespace: str | None) -> None:
    with pytest.raises(ValueError, match="Pod 'a' was addressed without a namespace"):
        core.PODS.object_path("a", namespace)


@pytest.mark.parametrize("name", ["../secrets/x", "a/../../../kube-system/secrets/x", "a/b", "/", ".", ".."])
def test_a_name_from_a_user_never_leads_elsewhere(name: str) -> None:
    """A Token with such a secretRef would have the operator write into another namespace."""
    with pytest.raises(Invalid, match="cannot name a Secret"):
        core.SECRETS.object_path(name, "ns")
    with pytest.raises(Invalid, match="cannot name a Pod"):
        core.PODS.object_path("a", name)


def test_a_resource_is_called_as_kubectl_calls_it() -> None:
    assert str(core.PODS) == "pods"
    assert str(core.DEPLOYMENTS) == "deployments.apps"
    assert core.DEPLOYMENTS.api_version == "apps/v1"


def test_two_views_of_a_kind_are_two_resources() -> None:
    """Caches keep a store for each, so that readers get the members they asked for."""
    assert core.SECRETS != core.SECRET_MANIFESTS
    assert len({core.SECRETS, core.SECRET_MANIFESTS, core.SECRETS}) == 2

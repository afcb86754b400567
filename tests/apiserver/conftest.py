"""One API server of each sort for all tests here, and the operator in a namespace of each test's own."""

from collections.abc import Iterator

import pytest

from lab.apiserver import ApiServer
from tests.support.apiserver import api_server, namespace
from tests.support.manager import Manager, Namespace, managed_server

__all__ = ["api_server", "managed_server", "namespace"]


@pytest.fixture
def space(managed_server: ApiServer) -> Namespace:
    """A namespace that no other test uses."""
    return Namespace(managed_server)


@pytest.fixture
def manager(managed_server: ApiServer, space: Namespace) -> Iterator[Manager]:
    """The operator for that namespace; it may still be starting."""
    with Manager(managed_server, namespaces=[space.name]) as running:
        yield running

"""Claims about reading ServiceMonitors, a kind that many clusters do not serve."""

from typing import Any, cast

import msgspec
import pytest

from coil.api.controller import Controller
from coil.kinds.controller.monitors import Monitor, Monitors
from coil.kinds.resources import SERVICE_MONITORS
from coil.kube.client import Client
from coil.kube.errors import ApiError, NotFound, Unavailable
from coil.kube.views import ManifestView
from coil.support.objects import ObjectMeta

pytestmark = pytest.mark.asyncio

THERE = ManifestView(metadata=ObjectMeta(name="alba-controller", namespace="ns"))
NO_OBJECT = NotFound(404, "NotFound", "not found", {"name": "alba-controller"})
NO_KIND = NotFound(404, "", "404 page not found")


class Server:
    """Answers each read with what it was told, and counts them."""

    def __init__(self, answer: ManifestView | ApiError) -> None:
        self.answer = answer
        self.reads = 0

    async def get(self, resource: Any, name: str, namespace: str) -> ManifestView:
        assert (resource, name, namespace) == (SERVICE_MONITORS, "alba-controller", "ns")
        self.reads += 1
        if isinstance(self.answer, ApiError):
            raise self.answer
        return self.answer


def controller(*, wanted: bool, generation: int = 1) -> Controller:
    metrics = {"enabled": wanted, "serviceMonitor": {"enabled": True}}
    meta = {"name": "alba", "namespace": "ns", "uid": "u", "generation": generation}
    return msgspec.convert({"metadata": meta, "spec": {"metrics": metrics}}, Controller)


def monitors(server: Server) -> Monitors:
    return Monitors(cast("Client", server))


@pytest.mark.parametrize(
    ("answer", "wanted", "found"),
    [
        (THERE, True, Monitor(relevant=True, live=THERE)),
        (THERE, False, Monitor(relevant=True, live=THERE)),
        (NO_OBJECT, True, Monitor(relevant=True)),
        (NO_OBJECT, False, Monitor()),
        (NO_KIND, True, Monitor()),
        (NO_KIND, False, Monitor()),
        (Unavailable(503, "Down", "later"), True, Monitor(relevant=True, error="503 Down: later")),
    ],
)
async def test_what_is_there_and_what_is_served(answer: Any, wanted: bool, found: Monitor) -> None:
    assert await monitors(Server(answer)).find(controller(wanted=wanted)) == found


async def test_a_controller_that_wants_none_is_asked_about_once_for_each_generation() -> None:
    server = Server(NO_KIND)
    asked = monitors(server)
    for _ in range(3):
        await asked.find(controller(wanted=False))
    assert server.reads == 1
    await asked.find(controller(wanted=False, generation=2))
    assert server.reads == 2
    await asked.find(controller(wanted=True, generation=2))
    assert server.reads == 3

"""Claims about the answers of the probe and metrics paths; the sockets are tested with the whole manager."""

import pytest
from aiohttp.test_utils import make_mocked_request
from aiohttp.web import Response
from prometheus_client import CollectorRegistry, Counter

from coil.service.http import PROBES, metrics, serving


@pytest.mark.asyncio
@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
async def test_probes_answer_ok(path: str) -> None:
    response = await PROBES[path](make_mocked_request("GET", path))
    assert isinstance(response, Response)
    assert (response.status, response.text) == (200, "ok")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("accept", "content_type"),
    [("", "text/plain"), ("application/openmetrics-text; version=1.0.0", "application/openmetrics-text")],
)
async def test_metrics_come_in_the_format_that_was_asked_for(accept: str, content_type: str) -> None:
    registry = CollectorRegistry()
    Counter("passes", "Passes so far", registry=registry).inc(3)
    response = await metrics(registry)(make_mocked_request("GET", "/metrics", headers={"Accept": accept}))
    assert isinstance(response, Response)
    assert response.content_type == content_type
    assert isinstance(response.body, bytes)
    assert b"passes_total 3.0" in response.body


@pytest.mark.asyncio
async def test_no_address_means_no_server() -> None:
    async with serving(None, PROBES) as port:
        assert port is None

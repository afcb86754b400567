"""Every verb on the wire, every refusal as its own error, every wait with an end."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from prometheus_client import REGISTRY

from coil.kube import errors
from coil.kube.client import Client, PatchKind, Propagation
from coil.kube.config import ClusterConfig
from coil.kube.core import LEASES, NODES, PODS
from coil.kube.credentials import TokenFile
from coil.kube.transport import Limits
from coil.kube.views import LeaseSpecView, LeaseView
from coil.support.objects import ObjectMeta
from tests.support.kubeserver import KubeServer, cut, refuse, say, silence, status_body

pytestmark = pytest.mark.asyncio

POD = {"kind": "Pod", "metadata": {"name": "a", "namespace": "ns", "resourceVersion": "7"}}


class Seen:
    """Answers with `answer` and remembers the request as it came."""

    def __init__(self, answer: Any = POD, code: int = 200) -> None:
        self.answer, self.code = answer, code
        self.body: Any = None

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        self.request = request
        self.headers = request.headers.copy()
        self.body = json.loads(await request.read() or b"null")
        return web.json_response(self.answer, status=self.code)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[KubeServer]:
    async with KubeServer().running() as running:
        yield running


@pytest_asyncio.fixture
async def client(server: KubeServer) -> AsyncIterator[Client]:
    async with Client(ClusterConfig(server=server.url), Limits(deadline=1.0, silence=0.2)) as opened:
        yield opened


async def test_get_reads_one_object(server: KubeServer, client: Client) -> None:
    await server.put("a", spec={"nodeName": "n1"})
    assert (await client.get(PODS, "a", "ns")).spec.node_name == "n1"
    assert server.requests[0].path == "/api/v1/namespaces/ns/pods/a"


async def test_the_end_of_a_log_is_text_whatever_its_bytes(server: KubeServer, client: Client) -> None:
    asked: list[web.Request] = []

    async def log(request: web.Request) -> web.StreamResponse:
        asked.append(request)
        return web.Response(body=b"error: caf\xe9\n", content_type="text/plain")

    server.on_request(log)
    assert await client.pod_log("a", "ns", container="c", lines=3, limit=99) == "error: caf\ufffd\n"
    assert asked[0].path == "/api/v1/namespaces/ns/pods/a/log"
    assert dict(asked[0].query) == {"container": "c", "tailLines": "3", "limitBytes": "99"}


async def test_replies_are_asked_for_unpacked(server: KubeServer, client: Client) -> None:
    server.on_request(seen := Seen())
    await client.get(PODS, "a", "ns")
    assert seen.headers["Accept-Encoding"] == "identity"
    assert seen.headers["Accept"] == "application/json"


async def test_cluster_scoped_objects_have_no_namespace_in_their_path(
    server: KubeServer, client: Client
) -> None:
    server.on_request(Seen())
    await client.get(NODES, "n1")
    assert server.requests[0].path == "/api/v1/nodes/n1"


async def test_list_page_passes_its_options(server: KubeServer, client: Client) -> None:
    server.on_list(seen := Seen({"metadata": {"resourceVersion": "9"}, "items": [POD]}))
    page = await client.list_page(
        PODS, "ns", limit=7, continue_token="t", label_selector="a in (b,c)", field_selector="spec.nodeName=n"
    )
    assert [item.metadata.name for item in page.items] == ["a"]
    assert dict(seen.request.query) == {
        "limit": "7",
        "continue": "t",
        "labelSelector": "a in (b,c)",
        "fieldSelector": "spec.nodeName=n",
    }


async def test_create_posts_a_manifest_or_a_struct(server: KubeServer, client: Client) -> None:
    server.on_request(as_json := Seen(), as_struct := Seen())
    created = await client.create(PODS, POD, "ns", field_manager="coil")
    assert created.metadata.resource_version == "7"
    assert (as_json.request.method, as_json.body) == ("POST", POD)
    assert as_json.request.query["fieldManager"] == "coil"
    lease = LeaseView(metadata=ObjectMeta(name="l"), spec=LeaseSpecView(holder_identity="me"))
    await client.create(LEASES, lease, "ns")
    assert as_struct.body == {"metadata": {"name": "l"}, "spec": {"holderIdentity": "me"}}


@pytest.mark.parametrize(
    ("kind", "content_type"),
    [
        (PatchKind.MERGE, "application/merge-patch+json"),
        (PatchKind.STRATEGIC, "application/strategic-merge-patch+json"),
        (PatchKind.APPLY, "application/apply-patch+yaml"),
    ],
)
async def test_patches_say_their_kind(
    server: KubeServer, client: Client, kind: PatchKind, content_type: str
) -> None:
    server.on_request(seen := Seen())
    await client.patch(PODS, "a", {"status": {"phase": "X"}}, "ns", kind=kind, subresource="status")
    assert seen.headers["Content-Type"] == content_type
    assert (seen.request.method, seen.request.path) == ("PATCH", "/api/v1/namespaces/ns/pods/a/status")
    assert seen.body == {"status": {"phase": "X"}}


async def test_a_patch_can_insist_on_a_version(server: KubeServer, client: Client) -> None:
    server.on_request(seen := Seen(status_body(409, "Conflict"), 409))
    patch = {"metadata": {"labels": {"a": "b"}}}
    with pytest.raises(errors.Conflict):
        await client.patch(PODS, "a", patch, "ns", resource_version="7")
    assert seen.body == {"metadata": {"labels": {"a": "b"}, "resourceVersion": "7"}}
    assert patch == {"metadata": {"labels": {"a": "b"}}}, "the caller's patch is the caller's"


async def test_apply_can_take_over_fields(server: KubeServer, client: Client) -> None:
    server.on_request(seen := Seen())
    await client.patch(PODS, "a", {}, "ns", kind=PatchKind.APPLY, field_manager="coil", force=True)
    assert dict(seen.request.query) == {"fieldManager": "coil", "force": "true"}


async def test_replace_puts(server: KubeServer, client: Client) -> None:
    server.on_request(seen := Seen())
    await client.replace(PODS, "a", POD, "ns", subresource="status")
    assert (seen.request.method, seen.request.path) == ("PUT", "/api/v1/namespaces/ns/pods/a/status")


async def test_delete_carries_its_preconditions(server: KubeServer, client: Client) -> None:
    server.on_request(seen := Seen({"kind": "Status"}))
    await client.delete(
        PODS,
        "a",
        "ns",
        uid="u",
        resource_version="7",
        grace_seconds=0,
        propagation=Propagation.ORPHAN,
    )
    assert seen.body == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u", "resourceVersion": "7"},
        "gracePeriodSeconds": 0,
        "propagationPolicy": "Orphan",
    }


async def test_delete_without_preconditions_has_none(server: KubeServer, client: Client) -> None:
    server.on_request(seen := Seen({"kind": "Status"}))
    await client.delete(PODS, "a", "ns")
    assert seen.body == {"apiVersion": "v1", "kind": "DeleteOptions"}


@pytest.mark.parametrize(
    ("code", "reason", "error"),
    [
        (400, "BadRequest", errors.Invalid),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (409, "AlreadyExists", errors.AlreadyExists),
        (409, "Conflict", errors.Conflict),
        (410, "Expired", errors.Gone),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.Unavailable),
        (503, "ServiceUnavailable", errors.Unavailable),
        (504, "Timeout", errors.Timeout),
    ],
)
async def test_each_refusal_is_its_own_error(
    server: KubeServer, client: Client, code: int, reason: str, error: type[errors.ApiError]
) -> None:
    server.on_request(*[refuse(code, reason)] * 2)
    with pytest.raises(error) as caught:
        await client.create(PODS, POD, "ns")
    assert type(caught.value) is error
    assert (caught.value.status, caught.value.reason) == (code, reason)
    assert str(caught.value) == f"POST /api/v1/namespaces/ns/pods: {code} {reason}: scripted"


async def test_a_refusal_in_another_language_is_an_error_too(server: KubeServer, client: Client) -> None:
    async def html(_: web.Request) -> web.StreamResponse:
        return web.Response(status=502, body=b"<html>bad gateway \xff</html>")

    server.on_request(html)
    with pytest.raises(errors.Unavailable, match="bad gateway"):
        await client.get(PODS, "a", "ns")


@pytest.mark.parametrize("code", [429, 503])
async def test_a_request_turned_away_is_sent_again_when_the_server_says(
    server: KubeServer, client: Client, code: int
) -> None:
    server.on_request(refuse(code, Retry_After="0"), refuse(code, Retry_After="0"), seen := Seen())
    await client.create(PODS, POD, "ns")
    assert seen.body == POD, "the body is sent again in full"


async def test_waiting_to_be_let_in_ends_before_the_deadline(server: KubeServer, client: Client) -> None:
    """A wait that would outlast the deadline is not begun: the error says what the server said."""
    server.on_request(refuse(429, "TooManyRequests", Retry_After="60"))
    began = time.monotonic()
    with pytest.raises(errors.TooManyRequests):
        await client.create(PODS, POD, "ns")
    assert time.monotonic() - began < 0.9


async def test_a_refusal_without_retry_after_is_not_repeated(server: KubeServer, client: Client) -> None:
    server.on_request(refuse(500), refuse(500))
    with pytest.raises(errors.Unavailable):
        await client.create(PODS, POD, "ns")
    assert len(server.requests) == 1


async def hang(request: web.Request) -> web.StreamResponse:
    await silence(request)
    return web.Response()


CALLS: list[Callable[[Client], Awaitable[object]]] = [
    lambda client: client.get(PODS, "a", "ns"),
    lambda client: client.create(PODS, POD, "ns"),
    lambda client: client.patch(PODS, "a", {}, "ns"),
    lambda client: client.replace(PODS, "a", POD, "ns"),
    lambda client: client.delete(PODS, "a", "ns"),
    lambda client: client.list_page(PODS),
]


@pytest.mark.parametrize("call", CALLS)
async def test_every_request_has_a_deadline(
    server: KubeServer, call: Callable[[Client], Awaitable[object]]
) -> None:
    server.on_request(hang)
    server.on_list(hang)
    async with Client(ClusterConfig(server=server.url), Limits(deadline=0.1)) as client:
        with pytest.raises(errors.Timeout, match=r"no answer within 0\.1 s"):
            await call(client)


@pytest.mark.parametrize("call", CALLS)
async def test_no_server_is_an_error_of_the_same_family(call: Callable[[Client], Awaitable[object]]) -> None:
    async with Client(ClusterConfig(server="http://127.0.0.1:9"), Limits(deadline=1)) as client:
        with pytest.raises(errors.Unavailable):
            await call(client)


async def test_an_answer_cut_short_is_an_error(server: KubeServer, client: Client) -> None:
    server.on_request(say(b'{"metadata":', then=cut), say(b'{"metadata":'))
    for _ in range(2):
        with pytest.raises(errors.Unavailable):
            await client.create(PODS, POD, "ns")


async def test_no_more_requests_at_once_than_allowed(server: KubeServer) -> None:
    async def slow(_: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.02)
        return web.json_response(POD)

    server.on_request(*[slow] * 20)
    async with Client(ClusterConfig(server=server.url), Limits(concurrent=4)) as client:
        await asyncio.gather(*(client.create(PODS, POD, "ns") for _ in range(20)))
    assert server.most_open == 4


async def test_watches_do_not_use_up_the_requests_allowed(server: KubeServer) -> None:
    server.on_watch(*[say(b'{"x":1}\n', then=silence)] * 3)
    await server.put("a")
    async with Client(ClusterConfig(server=server.url), Limits(concurrent=1)) as client:
        watches = [client.watch(PODS, resource_version="1") for _ in range(3)]
        for watch in watches:
            assert await anext(watch) == b'{"x":1}'
        await client.get(PODS, "a", "ns")
        for watch in watches:
            await watch.aclose()


async def test_a_silent_watch_times_out(server: KubeServer, client: Client) -> None:
    server.on_watch(say(b"{}\n", then=silence))
    async with aclosing(client.watch(PODS, resource_version="1")) as lines:
        assert await anext(lines) == b"{}"
        with pytest.raises(errors.Timeout):
            await anext(lines)


async def test_cancelling_a_request_gives_its_place_back(server: KubeServer) -> None:
    server.on_request(hang)
    await server.put("a")
    async with Client(ClusterConfig(server=server.url), Limits(concurrent=1)) as client:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await client.get(PODS, "a", "ns")
        await client.get(PODS, "a", "ns")


async def test_a_rotated_token_is_read_when_the_old_one_is_refused(
    server: KubeServer, tmp_path: Path
) -> None:
    path = tmp_path / "token"
    path.write_text("old\n")

    async def guarded(request: web.Request) -> web.StreamResponse:
        if request.headers["Authorization"] != "Bearer new":
            return await refuse(401, "Unauthorized")(request)
        return web.json_response(POD)

    server.on_request(Seen(), guarded, guarded, guarded)
    config = ClusterConfig(server=server.url, credentials=TokenFile(path))
    async with Client(config) as client:
        await client.get(PODS, "a", "ns")
        path.write_text("new\n")
        await client.get(PODS, "a", "ns")
    assert len(server.requests) == 3, "one refusal, one repetition"


async def test_a_wrong_token_is_tried_twice_and_no_more(server: KubeServer, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("wrong")
    server.on_request(*[refuse(401, "Unauthorized")] * 5)
    async with Client(ClusterConfig(server=server.url, credentials=TokenFile(path))) as client:
        with pytest.raises(errors.Unauthorized):
            await client.get(PODS, "a", "ns")
    assert len(server.requests) == 2


async def test_a_missing_token_file_is_an_error_of_the_same_family(
    server: KubeServer, tmp_path: Path
) -> None:
    config = ClusterConfig(server=server.url, credentials=TokenFile(tmp_path / "nothing"))
    async with Client(config) as client:
        with pytest.raises(errors.Unauthorized, match="cannot read the token file"):
            await client.get(PODS, "a", "ns")


async def test_requests_are_counted(server: KubeServer, client: Client) -> None:
    def count(code: str) -> float:
        labels = {"code": code, "host": server.url.removeprefix("http://"), "method": "GET"}
        return REGISTRY.get_sample_value("rest_client_requests_total", labels) or 0

    # An earlier test's server may have had the port.
    before = count("200"), count("404")
    await server.put("a")
    await client.get(PODS, "a", "ns")
    with pytest.raises(errors.NotFound):
        await client.get(PODS, "b", "ns")
    assert (count("200"), count("404")) == (before[0] + 1, before[1] + 1)


async def test_a_client_that_is_not_open_says_so() -> None:
    client = Client(ClusterConfig(server="http://127.0.0.1:9"))
    with pytest.raises(RuntimeError, match="async with"):
        await client.get(PODS, "a", "ns")

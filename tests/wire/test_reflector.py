"""A store against a server that misbehaves: in the end it is equal, and nothing is left behind."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from coil.kube.client import Client
from coil.kube.config import ClusterConfig
from coil.kube.core import PODS
from coil.kube.reflector import Reflector, Scope
from coil.kube.store import Change, Store
from coil.kube.transport import Limits
from coil.kube.views import PodView
from coil.support.backoff import Backoff
from coil.support.objects import ObjectKey
from coil.support.tasks import Tasks
from tests.support.kubeserver import KubeServer, cut, eventually, refuse, say, silence, status_body

pytestmark = pytest.mark.asyncio

QUICK = Backoff(base=0.01, cap=0.05)
LIMITS = Limits(deadline=2.0, connect=2.0, silence=0.3)


@pytest_asyncio.fixture
async def server() -> AsyncIterator[KubeServer]:
    async with KubeServer().running() as running:
        yield running


class Followed:
    """A store that a reflector fills, and what its handlers heard."""

    def __init__(self) -> None:
        self.store: Store[PodView] = Store("pods")
        self.heard: list[tuple[str, str]] = []
        self.store.on_event(self._hear)

    def _hear(self, change: Change[PodView]) -> None:
        self.heard.append((change.kind.value, change.key.name))

    @property
    def names(self) -> set[str]:
        return {item.metadata.name for item in self.store.list()}

    async def becomes(self, *names: str) -> None:
        await eventually(lambda: self.names == set(names), f"the store holds {names}; it has {self.names}")


@asynccontextmanager
async def following(server: KubeServer, scope: Scope | None = None, **limits: Any) -> AsyncIterator[Followed]:
    followed = Followed()
    bounds = Limits(deadline=2.0, connect=2.0, silence=limits.get("silence", 30.0))
    async with Client(ClusterConfig(server=server.url), bounds) as client, Tasks() as tasks:
        tasks.spawn("reflector", Reflector(client, PODS, followed.store, scope, QUICK).run())
        yield followed


async def synced(followed: Followed) -> None:
    async with asyncio.timeout(5):
        await followed.store.synced.wait()


async def test_a_collection_is_read_in_pages_of_500(server: KubeServer) -> None:
    for number in range(1234):
        await server.put(f"pod-{number}")
    async with following(server) as followed:
        await synced(followed)
        assert len(followed.store) == 1234
    assert server.count("list") == 3
    assert {request.query["limit"] for request in server.requests if "limit" in request.query} == {"500"}


async def test_changes_follow(server: KubeServer) -> None:
    await server.put("a")
    async with following(server) as followed:
        await synced(followed)
        await server.put("b")
        await server.put("a")
        await server.remove("b")
        await eventually(lambda: len(followed.heard) == 4, "all changes were heard")
    assert followed.heard == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a"), ("DELETED", "b")]
    assert server.count("list") == 1


async def test_a_watch_that_ends_is_resumed_without_a_list(server: KubeServer) -> None:
    await server.put("a")
    async with following(server) as followed:
        await synced(followed)
        for name in "bcd":
            await server.put(name)
            await eventually(lambda: name in followed.names, f"{name} came")  # noqa: B023 -- awaited here
            await server.end_watches()
        await server.remove("a")
        await followed.becomes("b", "c", "d")
    assert server.count("list") == 1
    assert server.count("watch") >= 4


async def test_a_cut_in_the_middle_of_a_line_loses_nothing(server: KubeServer) -> None:
    await server.put("a")
    await server.put("b")
    half = b'{"type":"DELETED","object":{"metadata":{"name":"a","na'
    bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(server.version)}}}
    server.on_watch(say(bookmark, half, then=cut))
    async with following(server) as followed:
        await synced(followed)
        await eventually(lambda: server.count("watch") >= 1, "the watch was cut")
        await server.remove("a")
        await followed.becomes("b")
    assert followed.heard[-1] == ("DELETED", "a")
    assert server.count("list") == 1


async def test_what_is_deleted_in_a_gap_is_learnt_from_410_as_an_event(server: KubeServer) -> None:
    for name in "abc":
        await server.put(name)
    async with following(server) as followed:
        await synced(followed)
        await eventually(lambda: server.open_watches, "the watch is open")
        server.on_watch(refuse(500), refuse(500))
        await server.end_watches()
        await server.remove("a")
        await server.put("d")
        server.compact()
        await followed.becomes("b", "c", "d")
    assert ("DELETED", "a") in followed.heard
    assert followed.heard.count(("ADDED", "b")) == 1, "what stayed the same is no news"


async def test_what_is_deleted_in_a_gap_is_learnt_from_410_as_a_status(server: KubeServer) -> None:
    for name in "abc":
        await server.put(name)
    server.on_watch(refuse(410, "Expired"))
    server.on_list()
    async with following(server) as followed:
        await synced(followed)
        await server.remove("a")
        await followed.becomes("b", "c")
    assert ("DELETED", "a") in followed.heard
    assert server.count("list") == 2


async def test_a_continue_token_that_expires_starts_over_and_learns_what_vanished(server: KubeServer) -> None:
    """The first page showed what was deleted before the second could be read."""
    for number in range(600):
        await server.put(f"pod-{number:04}")

    async def delete_and_forget(request: web.Request) -> web.StreamResponse:
        await server.remove("pod-0000")
        return await refuse(410, "Expired")(request)

    server.on_list(server._list, delete_and_forget)
    async with following(server) as followed:
        await synced(followed)
        assert "pod-0000" not in followed.names
        assert len(followed.store) == 599
    assert followed.heard.count(("DELETED", "pod-0000")) == 1
    assert server.requests[2].query.get("limit") is None, "the second list has no pages that could expire"


async def test_silence_means_a_new_watch_from_the_same_place(server: KubeServer) -> None:
    await server.put("a")
    server.on_watch(say(then=silence))
    async with following(server, silence=0.1) as followed:
        await synced(followed)
        await eventually(lambda: server.count("watch") == 2, "a second watch was opened")
        await server.put("b")
        await followed.becomes("a", "b")
    assert server.count("list") == 1


async def test_a_server_that_never_answers_a_watch_is_left(server: KubeServer) -> None:
    async def stall(request: web.Request) -> web.StreamResponse:
        await silence(request)
        return web.Response()

    await server.put("a")
    server.on_watch(stall)
    async with following(server, silence=0.1) as followed:
        await synced(followed)
        await server.put("b")
        await followed.becomes("a", "b")


async def test_three_watches_without_a_word_mean_list_again(server: KubeServer) -> None:
    await server.put("a")
    server.on_watch(say(), say(then=cut), refuse(500))
    async with following(server) as followed:
        await synced(followed)
        await eventually(lambda: server.count("list") == 2, "the list was read again")
    assert server.count("watch") <= 4


@pytest.mark.parametrize(
    "failures",
    [
        [refuse(500), refuse(502), refuse(504)],
        [refuse(429, Retry_After="0"), refuse(503, Retry_After="0")],
        [refuse(429), refuse(403, "Forbidden"), refuse(404, "NotFound"), refuse(401, "Unauthorized")],
        [say(then=cut), say(b"<html>"), say(b"[]"), say(b'{"items": 7}')],
    ],
)
async def test_a_list_is_tried_until_it_succeeds(server: KubeServer, failures: list[Any]) -> None:
    await server.put("a")
    server.on_list(*failures)
    async with following(server) as followed:
        await synced(followed)
        assert followed.names == {"a"}


async def test_a_failed_page_is_read_again_not_the_whole_list(server: KubeServer) -> None:
    for number in range(600):
        await server.put(f"pod-{number:04}")
    server.on_list(server._list, refuse(500))
    async with following(server) as followed:
        await synced(followed)
        assert len(followed.store) == 600
    assert server.count("list") == 3


async def test_an_error_event_of_another_sort_resumes(server: KubeServer) -> None:
    await server.put("a")
    server.on_watch(say({"type": "ERROR", "object": status_body(500, "InternalError")}))
    async with following(server) as followed:
        await synced(followed)
        await server.put("b")
        await followed.becomes("a", "b")
    assert server.count("list") == 1


async def test_one_undecodable_object_of_a_list_costs_itself_only(server: KubeServer) -> None:
    await server.put("good")
    await server.put("bad", spec={"nodeName": 7})
    before = undecodable_count()
    async with following(server) as followed:
        with capture_logs() as logs:
            await synced(followed)
        assert followed.names == {"good"}
        assert "nodeName" in (followed.store.undecodable("ns", "bad") or "")
        assert undecodable_count() == before + 1
        assert [entry["key"] for entry in logs if entry["log_level"] == "error"] == ["ns/bad"]
        await server.put("bad", spec={"nodeName": "n1"})
        await followed.becomes("good", "bad")
        assert followed.store.undecodable("ns", "bad") is None


async def test_one_undecodable_line_costs_itself_only_and_keeps_the_last_good_state(
    server: KubeServer,
) -> None:
    await server.put("a", spec={"nodeName": "n1"})
    async with following(server) as followed:
        await synced(followed)
        await server.put("a", spec={"nodeName": ["what"]})
        await server.put("b")
        await followed.becomes("a", "b")
        known = followed.store.get("ns", "a")
        assert known is not None
        assert known.spec.node_name == "n1"
        assert followed.store.undecodable("ns", "a") is not None
        await server.remove("a")
        await followed.becomes("b")
    assert server.count("list") == 1
    assert server.count("watch") == 1


async def test_an_undecodable_object_said_again_is_reported_once(server: KubeServer) -> None:
    await server.put("bad", spec={"nodeName": 7})
    before = undecodable_count()
    reports: list[ObjectKey] = []
    async with following(server) as followed:
        followed.store.on_undecodable(lambda key, _: reports.append(key))
        await synced(followed)
        server.on_watch(refuse(410, "Expired"))
        await server.end_watches()
        await eventually(lambda: server.count("list") == 2, "the list was read again")
    assert undecodable_count() == before + 1
    assert reports == [ObjectKey("ns", "bad")]


@pytest.mark.parametrize(
    "garbage", [b"not json\n", b'{"type":"NEWS","object":{}}\n', b"\xff\xfe\n", b"[1]\n"]
)
async def test_garbage_on_a_watch_is_survived(server: KubeServer, garbage: bytes) -> None:
    await server.put("a")
    server.on_watch(say(garbage))
    async with following(server) as followed:
        await synced(followed)
        await server.put("b")
        await followed.becomes("a", "b")


async def test_blank_lines_mean_nothing(server: KubeServer) -> None:
    await server.put("a")
    server.on_watch(say(b"\n\r\n\n", then=silence))
    async with following(server) as followed:
        await synced(followed)
        await eventually(lambda: server.open_watches == 1, "the watch is open")
    assert server.count("watch") == 1


async def test_a_line_may_be_of_any_length_and_come_in_crumbs(server: KubeServer) -> None:
    """A ConfigMap may have 1 MiB; asyncio's line reader gives up at 64 KiB."""
    meta = {"name": "big", "namespace": "ns", "resourceVersion": "900", "annotations": {"x": "y" * 2_000_000}}
    line = json.dumps({"type": "ADDED", "object": {"metadata": meta}}).encode() + b"\n"
    crumbs = [line[at : at + 100_000] for at in range(0, len(line), 100_000)]
    server.on_watch(say(*crumbs, then=silence))
    async with following(server) as followed:
        await followed.becomes("big")
        big = followed.store.get("ns", "big")
        assert big is not None
        assert len(big.metadata.annotations["x"]) == 2_000_000


async def test_a_slow_server_is_waited_for_as_long_as_it_speaks(server: KubeServer) -> None:
    async def dribble(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for number in range(6):
            meta = {"name": f"p{number}", "namespace": "ns", "resourceVersion": str(900 + number)}
            line = json.dumps({"type": "ADDED", "object": {"metadata": meta}}).encode() + b"\n"
            for byte in (line[:30], line[30:]):
                await response.write(byte)
                await asyncio.sleep(0.05)
        await silence(request)
        return response

    server.on_watch(dribble)
    async with following(server, silence=0.3) as followed:
        await followed.becomes(*(f"p{number}" for number in range(6)))
    assert server.count("watch") == 1


async def test_a_namespace_is_a_scope(server: KubeServer) -> None:
    await server.put("mine", namespace="x")
    await server.put("other", namespace="y")
    async with following(server, Scope(namespace="x", label_selector="a=b")) as followed:
        await followed.becomes("mine")
    assert server.requests[0].path == "/api/v1/namespaces/x/pods"
    assert {request.query["labelSelector"] for request in server.requests} == {"a=b"}


async def test_watches_ask_for_bookmarks_and_a_timeout(server: KubeServer) -> None:
    async with following(server) as followed:
        await synced(followed)
        await eventually(lambda: server.count("watch") == 1, "the watch was opened")
    query = server.requests[-1].query
    assert query["allowWatchBookmarks"] == "true"
    assert 290 <= int(query["timeoutSeconds"]) <= 590


async def test_nothing_is_left_behind(server: KubeServer) -> None:
    """Tasks end, connections close, whatever the reflector was doing when it was cancelled."""
    await server.put("a")
    for trouble in ([], [say(then=silence)], [refuse(500)] * 3, [say(b"garbage\n")]):
        server.on_watch(*trouble)
        async with following(server) as followed:
            await synced(followed)
            await eventually(lambda: server.count("watch") > 0, "a watch was asked for")
        await eventually(lambda: server.open_watches == 0, "the server sees every watch closed")
    ours = [task for task in asyncio.all_tasks() if "reflector" in task.get_name()]
    assert ours == []


def undecodable_count() -> float:
    return REGISTRY.get_sample_value("coil_reflector_undecodable_total", {"resource": "pods"}) or 0.0

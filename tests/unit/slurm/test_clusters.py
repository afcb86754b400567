"""The registry of clusters: what comes, changes and goes."""

import asyncio

import pytest

from coil.slurm.clusters import Clusters
from coil.support.objects import ObjectKey
from coil.support.tasks import Tasks

pytestmark = [pytest.mark.asyncio, pytest.mark.looptime]

KEY = ObjectKey("ns", "slurm")


async def test_a_new_address_or_key_keeps_the_client_and_its_view() -> None:
    """Field case SEC-07."""
    async with Tasks() as tasks:
        clusters = Clusters(tasks)
        first = clusters.put(KEY, "http://old:6820", b"k" * 32)
        again = clusters.put(KEY, "http://new:6820", b"n" * 32)
        assert again is first is clusters.get(KEY)
        assert first.client.base_url == "http://new:6820"
        assert first.tokens.keys == [b"k" * 32, b"n" * 32]


@pytest.mark.parametrize(
    ("url", "name", "moves"),
    [("http://old:6820", "c", 0), ("http://new:6820", "c", 1), ("http://old:6820", "d", 1)],
)
async def test_only_another_address_or_name_is_another_server(url: str, name: str, moves: int) -> None:
    async with Tasks() as tasks:
        clusters = Clusters(tasks)
        poller = clusters.put(KEY, "http://old:6820", b"k" * 32, "c").poller
        cluster = clusters.put(KEY, url, b"n" * 32, name)
        assert (poller._moves, cluster.client.cluster) == (moves, name)


async def test_a_removed_cluster_is_no_longer_polled() -> None:
    async with Tasks() as tasks:
        clusters = Clusters(tasks)
        clusters.put(KEY, "http://old:6820", b"k" * 32)
        poll = clusters._polls[KEY]
        clusters.remove(KEY)
        clusters.remove(KEY)
        assert clusters.get(KEY) is None
        await asyncio.wait([poll], timeout=1)
        assert poll.cancelled()


async def test_listeners_hear_of_clusters_that_come_later() -> None:
    heard: list[tuple[ObjectKey, object]] = []
    new = b"n" * 32
    async with Tasks() as tasks:
        clusters = Clusters(tasks)
        clusters.on_change(lambda key, names: heard.append((key, names)))
        clusters.on_key(lambda key: heard.append((key, "rekeyed")))
        clusters.on_health(lambda key, health: heard.append((key, health.ok)))
        poller = clusters.put(KEY, "http://old:6820", b"k" * 32).poller
        for callback in poller._on_change:
            callback(frozenset({"n1"}))
        for turned in poller._on_health:
            turned(poller.health)
        tokens = clusters.put(KEY, "http://old:6820", new).tokens
        tokens.taken(tokens.refused(tokens()))
    assert heard == [(KEY, {"n1"}), (KEY, False), (KEY, "rekeyed")]
    assert tokens.key == new

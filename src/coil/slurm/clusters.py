"""All Slurm clusters the process speaks with, by the namespace and name of their Controller."""

import asyncio
from collections.abc import Callable, ItemsView

from coil.slurm.client import SlurmClient
from coil.slurm.poller import ClusterPoller, Health
from coil.slurm.tokens import TokenSource
from coil.support.objects import ObjectKey
from coil.support.tasks import Tasks


class Cluster:
    """One cluster: `client` to write, `poller` to know."""

    def __init__(self, client: SlurmClient, poller: ClusterPoller, tokens: TokenSource) -> None:
        self.client = client
        self.poller = poller
        self.tokens = tokens


class Clusters:
    """Registry of clusters; each has a client and a running poller. Use within the event loop.

    Listeners hear of every cluster, present and future, so they can be added once at the start.
    """

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._clusters: dict[ObjectKey, Cluster] = {}
        self._polls: dict[ObjectKey, asyncio.Task[None]] = {}
        self._on_change: list[Callable[[ObjectKey, frozenset[str]], None]] = []
        self._on_health: list[Callable[[ObjectKey, Health], None]] = []
        self._on_key: list[Callable[[ObjectKey], None]] = []

    def get(self, key: ObjectKey) -> Cluster | None:
        """The cluster of a Controller; None when no client is registered for it."""
        return self._clusters.get(key)

    def items(self) -> ItemsView[ObjectKey, Cluster]:
        """Every registered cluster."""
        return self._clusters.items()

    def put(self, key: ObjectKey, base_url: str, jwt_key: bytes, name: str = "") -> Cluster:
        """Register a cluster, or give a registered one a new address or key without losing its view.

        `name` is the ClusterName that its answers must bear, "" when it is not known.
        """
        cluster = self._clusters.get(key)
        if cluster is None:
            cluster = self._clusters[key] = self._new(key, base_url, jwt_key, name)
            self._polls[key] = self._tasks.spawn(f"poll {key}", cluster.poller.run())
        else:
            cluster.tokens.rotate(jwt_key)
            if cluster.client.retarget(base_url, name):
                cluster.poller.moved()
        return cluster

    def remove(self, key: ObjectKey) -> None:
        """Stop and forget a cluster; nothing happens when there is none."""
        if self._clusters.pop(key, None) is not None:
            self._polls.pop(key).cancel()

    def on_change(self, callback: Callable[[ObjectKey, frozenset[str]], None]) -> None:
        """Call back with a cluster and the names of its nodes whose record or jobs changed."""
        self._on_change.append(callback)

    def on_health(self, callback: Callable[[ObjectKey, Health], None]) -> None:
        """Call back after a cluster's first read, and when reads begin to fail or succeed again."""
        self._on_health.append(callback)

    def on_key(self, callback: Callable[[ObjectKey], None]) -> None:
        """Call back when slurmctld of a cluster was seen to have a new JWT key."""
        self._on_key.append(callback)

    def _new(self, key: ObjectKey, base_url: str, jwt_key: bytes, name: str) -> Cluster:
        tokens = TokenSource(jwt_key)
        tokens.on_change(lambda: self._rekeyed(key))
        client = SlurmClient(base_url, tokens, cluster=name)
        poller = ClusterPoller(client, name=str(key))
        poller.on_change(lambda names: self._changed(key, names))
        poller.on_health(lambda health: self._turned(key, health))
        return Cluster(client, poller, tokens)

    def _changed(self, key: ObjectKey, names: frozenset[str]) -> None:
        for callback in self._on_change:
            callback(key, names)

    def _turned(self, key: ObjectKey, health: Health) -> None:
        for callback in self._on_health:
            callback(key, health)

    def _rekeyed(self, key: ObjectKey) -> None:
        for callback in self._on_key:
            callback(key)

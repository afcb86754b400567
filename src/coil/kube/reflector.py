"""Keeps a store equal to a collection of the API server: `following.step` with its I/O."""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Generic, TypeVar

import msgspec

from coil.kube.client import PAGE, Client
from coil.kube.errors import ApiError, Gone, Timeout
from coil.kube.following import (
    Complete,
    Ended,
    Listed,
    Listing,
    Put,
    Remove,
    Skip,
    State,
    Step,
    Watching,
    problem,
    step,
)
from coil.kube.resource import KubeObject, Resource
from coil.kube.store import Store
from coil.kube.wire import Line, Page, Undecodable, decode_line
from coil.support import metrics
from coil.support.backoff import Backoff
from coil.support.log import get_logger

T = TypeVar("T", bound=KubeObject)

RETRY = Backoff(base=0.5, cap=20.0)
"""Between failed lists or watches. With a request's deadline of 30 s the cap keeps I6: after an
outage the next list begins within 60 s."""

BREATH = 0.002
"""Seconds of taking in watch lines before other tasks get a turn."""

WATCH_SECONDS = (290, 590)
"""A watch is asked to end after a random time in between, so that many do not end together."""


class Scope(msgspec.Struct, frozen=True, kw_only=True):
    """Which objects of a kind: of one namespace or all, and matching the selectors."""

    namespace: str | None = None
    label_selector: str | None = None
    field_selector: str | None = None


class Reflector(Generic[T]):
    """Follows one collection for ever; see `coil.kube.following` for when it lists and watches."""

    def __init__(
        self,
        client: Client,
        resource: Resource[T],
        store: Store[T],
        scope: Scope | None = None,
        backoff: Backoff = RETRY,
    ) -> None:
        self._client = client
        self._resource = resource
        self._store = store
        self._scope = scope or Scope()
        self._backoff = backoff
        self._log = get_logger("reflector", resource=str(resource), namespace=self._scope.namespace or "")

    def __str__(self) -> str:
        return str(self._resource)

    async def run(self) -> None:
        """Follow until cancelled; no answer of the server ends it."""
        state: State = Listing()
        while True:
            state = await (self._list(state) if isinstance(state, Listing) else self._watch(state))

    async def _list(self, state: Listing) -> State:
        seen = await self._page(state)
        after = self._apply(step(state, seen))
        if isinstance(seen, Ended):
            self._log.warning("list failed", error=str(seen.error))
            await asyncio.sleep(self._backoff.delay(after.failures))
        await asyncio.sleep(0)  # a page takes some milliseconds to take in: others first
        return after

    async def _page(self, state: Listing) -> Page[T] | Ended:
        try:
            return await self._client.list_page(
                self._resource,
                self._scope.namespace,
                limit=PAGE if state.paged else 0,
                continue_token=state.token,
                label_selector=self._scope.label_selector,
                field_selector=self._scope.field_selector,
            )
        except ApiError as error:
            return Ended(error)

    async def _watch(self, state: Listed | Watching) -> State:
        after: State = state
        async with aclosing(self._news(state)) as news:
            async for seen in news:
                after = self._apply(step(after, seen))
                if not isinstance(after, Watching):
                    self._report(problem(seen))
                    break
        await asyncio.sleep(self._backoff.delay(after.failures))
        return after

    async def _news(self, state: Listed | Watching) -> AsyncGenerator[Line[T] | Ended]:
        """The lines of one watch, then how it ended."""
        lines = self._client.watch(
            self._resource,
            self._scope.namespace,
            resource_version=state.version,
            label_selector=self._scope.label_selector,
            field_selector=self._scope.field_selector,
            timeout_seconds=random.randint(*WATCH_SECONDS),  # noqa: S311 -- spreads load, hides nothing
        )
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            async with aclosing(lines):
                async for raw in lines:
                    yield decode_line(self._resource, raw)
                    if clock() - began > BREATH:
                        await asyncio.sleep(0)
                        began = clock()
        except ApiError as error:
            yield Ended(error)
        else:
            yield Ended()

    def _report(self, error: ApiError | None) -> None:
        """Say how a watch ended; ends that belong to the API's ordinary life only when debugging."""
        cause = _cause(error)
        metrics.watch_ends.labels(str(self._resource), cause).inc()
        level = logging.WARNING if cause == "error" else logging.DEBUG
        self._log.log(level, "watch ended", cause=cause, error=str(error or ""))

    def _apply(self, result: Step[T]) -> State:
        for effect in result.effects:
            match effect:
                case Put(items=items):
                    for item in items:
                        self._store.put(item)
                case Remove(key=key):
                    self._store.remove(key)
                case Skip(bad=bad):
                    self._skip(bad)
                case Complete(seen=seen):
                    metrics.relists.labels(str(self._resource)).inc()
                    self._store.complete(seen, self._scope.namespace)
        return result.state

    def _skip(self, bad: Undecodable) -> None:
        if self._store.undecodable(*bad.key) == bad.error:
            return  # the same again, after a relist: said already
        metrics.undecodable.labels(str(self._resource)).inc()
        self._log.error("object cannot be read and is left as it was", key=str(bad.key), error=bad.error)
        self._store.mark_undecodable(bad.key, bad.error)


def _cause(error: ApiError | None) -> str:
    match error:
        case None:
            return "end"
        case Gone():
            return "gone"
        case Timeout():
            return "silent"
        case _:
            return "error"

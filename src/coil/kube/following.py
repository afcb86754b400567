"""How to follow a collection through list and watch: the reflector's decisions, without its I/O.

    Listing ──last page──▶ Listed ──first line──▶ Watching
       ▲ └─more pages─┐      ▲                        │
       │ ◀────────────┘      └──── end or error ──────┤
       └───── 410 in any form; third silent watch ────┘

`step` takes a state and what was seen, and gives the next state and what the store must do. The
picture with every transition is in docs/runtime.md. Versions are compared for equality only: the
API calls them opaque.
"""

from collections.abc import Sequence
from typing import Generic, TypeVar

import msgspec

from coil.kube.errors import ApiError, Gone, from_status
from coil.kube.resource import KubeObject
from coil.kube.wire import Added, Bookmark, Deleted, Failed, Line, Modified, Page, Undecodable
from coil.support.objects import ObjectKey

T = TypeVar("T", bound=KubeObject)

STRIKES = 3
"""Watches in a row that end without a word before the list is read again.

Such a watch may be a broken proxy or a version the server no longer likes to talk about; a new
list is the doubt's remedy.
"""


class Listing(msgspec.Struct, frozen=True):
    """Reading pages. `failures` counts failures since the last good watch line, for backoff."""

    token: str = ""
    paged: bool = True
    seen: tuple[frozenset[ObjectKey], ...] = ()
    failures: int = 0


class Listed(msgspec.Struct, frozen=True, gc=False):
    """Everything up to `version` is known; a watch from there is due, or open and still silent."""

    version: str
    failures: int = 0
    strikes: int = 0


class Watching(msgspec.Struct, frozen=True, gc=False):
    """A watch is open and has spoken; everything up to `version` is known."""

    version: str
    failures: int = 0


class Ended(msgspec.Struct, frozen=True):
    """A request is over: with `error`, or cleanly, which only a watch does."""

    error: ApiError | None = None


class Put(msgspec.Struct, Generic[T], frozen=True):
    """Take these states in."""

    items: Sequence[T]


class Remove(msgspec.Struct, frozen=True):
    """The object was deleted."""

    key: ObjectKey


class Skip(msgspec.Struct, frozen=True):
    """An object could not be read: count, log, report and go on."""

    bad: Undecodable


class Complete(msgspec.Struct, frozen=True):
    """A list is complete: what is not in `seen` has vanished."""

    seen: frozenset[ObjectKey]


State = Listing | Listed | Watching
Seen = Page[T] | Line[T] | Ended
Effect = Put[T] | Remove | Skip | Complete


class Step(msgspec.Struct, Generic[T], frozen=True):
    """The next state, and what the store must do first, in order."""

    state: State
    effects: Sequence[Effect[T]] = ()


def step(state: State, seen: Seen[T]) -> Step[T]:
    """The reflector's whole logic; pure."""
    if isinstance(state, Listing):
        return _listing(state, seen)
    return _watching(state, seen)


def _listing(state: Listing, seen: Seen[T]) -> Step[T]:
    match seen:
        case Page():
            return _page(state, seen)
        case Ended(error=Gone()):
            # The token outlived the server's memory while we read. Without pages the next list
            # cannot expire half-way (client-go does the same).
            return Step(Listing(paged=False, failures=state.failures + 1))
        case Ended():
            return Step(msgspec.structs.replace(state, failures=state.failures + 1))
        case _:
            raise ValueError(f"a {type(seen).__name__} cannot come while pages are read")


def _page(state: Listing, page: Page[T]) -> Step[T]:
    here = frozenset((*(item.metadata.key for item in page.items), *(bad.key for bad in page.undecodable)))
    seen = (*state.seen, here)
    effects: list[Effect[T]] = [Put(page.items), *(Skip(bad) for bad in page.undecodable)]
    if page.continue_token:
        return Step(Listing(page.continue_token, state.paged, seen, state.failures), effects)
    effects.append(Complete(frozenset().union(*seen)))
    return Step(Listed(page.version, state.failures), effects)


def _watching(state: Listed | Watching, seen: Seen[T]) -> Step[T]:
    match seen:
        case Added(object=item) | Modified(object=item):
            return Step(Watching(item.metadata.resource_version), (Put((item,)),))
        case Deleted(object=item):
            return Step(Watching(item.metadata.resource_version), (Remove(item.metadata.key),))
        case Bookmark():
            return Step(Watching(seen.object.metadata.resource_version))
        case Undecodable(version=version) if version:
            return Step(Watching(version), (Skip(seen),))
        case Undecodable():
            return Step(_ended(state, problem(seen)), (Skip(seen),))
        case Failed() | Ended():
            return Step(_ended(state, problem(seen)))
        case Page():
            raise ValueError("a page cannot come while a watch is open")


def problem(seen: Seen[T]) -> ApiError | None:
    """What ended a list or watch, if it was not a clean end."""
    match seen:
        case Ended(error=error):
            return error
        case Failed(object=status):
            return from_status(status, doing="watch")
        case Undecodable(version="", error=error):
            # Without a version there is no place to go on from: what follows cannot be trusted.
            return ApiError(reason="Garbled", message=error, doing="watch")
        case _:
            return None


def _ended(state: Listed | Watching, error: ApiError | None) -> State:
    """Where to go when a watch is over."""
    if isinstance(error, Gone):
        # After a good watch, list at once; a server that answers 410 to every watch gets backoff.
        return Listing(failures=state.failures if isinstance(state, Watching) else state.failures + 1)
    if isinstance(state, Watching):
        return Listed(state.version, failures=0 if error is None else 1)
    if state.strikes + 1 >= STRIKES:
        return Listing(failures=state.failures + 1)
    return Listed(state.version, state.failures + 1, state.strikes + 1)

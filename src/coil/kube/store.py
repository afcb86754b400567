"""A cache of one kind: key to frozen view, with indices kept up to date change by change."""

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from enum import Enum
from typing import Generic, TypeVar

import msgspec

from coil.kube.resource import KubeObject
from coil.support.log import get_logger
from coil.support.objects import ObjectKey

T = TypeVar("T", bound=KubeObject)

log = get_logger("store")


class ChangeKind(Enum):
    """What happened to an object."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Change(msgspec.Struct, Generic[T], frozen=True):
    """One change of a store. `old` is None when added, `new` is None when deleted."""

    kind: ChangeKind
    old: T | None
    new: T | None

    @property
    def latest(self) -> T:
        """The state after the change, or the last one before the object went."""
        latest = self.new if self.new is not None else self.old
        if latest is None:
            raise ValueError("a change is of some object; both of its states are None")
        return latest

    @property
    def key(self) -> ObjectKey:
        """Namespace and name of the object."""
        return self.latest.metadata.key


class _Index(Generic[T]):
    """Value to the objects that have it. `values` must depend on the object only."""

    def __init__(self, name: str, values: Callable[[T], Iterable[str]]) -> None:
        self._name = name
        self._values_of = values
        self._by_value: dict[str, dict[ObjectKey, T]] = {}

    def __getitem__(self, value: str) -> Sequence[T]:
        return tuple(self._by_value.get(value, {}).values())

    def update(self, key: ObjectKey, old: T | None, new: T | None) -> None:
        after = set() if new is None else self._values(new)
        for value in set() if old is None else self._values(old) - after:
            self._discard(value, key)
        for value in after:
            if new is not None:
                self._by_value.setdefault(value, {})[key] = new

    def _discard(self, value: str, key: ObjectKey) -> None:
        if (members := self._by_value.get(value)) is None:
            return
        members.pop(key, None)
        if not members:
            del self._by_value[value]

    def _values(self, item: T) -> set[str]:
        try:
            return set(self._values_of(item))
        except Exception:  # one odd object must not stop the cache of all others (I7)
            log.exception("index function failed", index=self._name, key=str(item.metadata.key))
            return set()


class Store(Generic[T]):
    """Objects of one kind as last seen.

    Readers get frozen views and may keep them. Only the reflector writes. Callbacks run inside the
    write, in the order of the changes, and must be quick: map to keys and add them to a queue.

    Args:
        name: for logs.
        namespaces: what must be listed once before `synced` is set; None stands for all namespaces.
    """

    def __init__(self, name: str, namespaces: Iterable[str | None] = (None,)) -> None:
        self.name = name
        self.synced = asyncio.Event()
        self._unlisted = set(namespaces)
        self._objects: dict[ObjectKey, T] = {}
        self._undecodable: dict[ObjectKey, str] = {}
        self._indices: dict[str, _Index[T]] = {}
        self._callbacks: list[Callable[[Change[T]], None]] = []
        self._undecodable_callbacks: list[Callable[[ObjectKey, str], None]] = []

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, namespace: str, name: str) -> T | None:
        """The object, or None when there is none."""
        return self._objects.get(ObjectKey(namespace, name))

    def list(self, namespace: str | None = None) -> Sequence[T]:
        """All objects, or those of one namespace."""
        if namespace is None:
            return tuple(self._objects.values())
        return tuple(item for key, item in self._objects.items() if key.namespace == namespace)

    def by_index(self, index: str, value: str) -> Sequence[T]:
        """The objects for which the index function gave `value`; KeyError for an unknown index."""
        return self._indices[index][value]

    def add_index(self, name: str, values: Callable[[T], Iterable[str]]) -> None:
        """Keep objects findable by what `values` gives for them; ValueError when `name` is taken."""
        if name in self._indices:
            raise ValueError(f"store {self.name} already has an index {name!r}")
        index = self._indices[name] = _Index(name, values)
        for key, item in self._objects.items():
            index.update(key, None, item)

    def on_event(self, callback: Callable[[Change[T]], None]) -> None:
        """Call back after every change from now on."""
        self._callbacks.append(callback)

    def on_undecodable(self, callback: Callable[[ObjectKey, str], None]) -> None:
        """Call back when a new state of an object cannot be read, with the reason."""
        self._undecodable_callbacks.append(callback)

    def undecodable(self, namespace: str, name: str) -> str | None:
        """Why the newest state of that object could not be read, if so; `get` has an older one."""
        return self._undecodable.get(ObjectKey(namespace, name))

    def unknown(self, namespace: str) -> Sequence[str]:
        """Names of objects of a namespace that exist and were never readable."""
        never = self._undecodable.keys() - self._objects.keys()
        return sorted(key.name for key in never if key.namespace == namespace)

    def put(self, item: T) -> None:
        """Take in a state; one whose version is the known one changes nothing."""
        key = item.metadata.key
        self._undecodable.pop(key, None)
        old = self._objects.get(key)
        if old is not None and old.metadata.resource_version == item.metadata.resource_version:
            return
        if old is not None and old.metadata.uid != item.metadata.uid:
            # Deleted and made anew while we were not looking: two things have happened.
            self.remove(key)
            old = None
        self._objects[key] = item
        self._announce(key, Change(ChangeKind.ADDED if old is None else ChangeKind.MODIFIED, old, item))

    def remove(self, key: ObjectKey) -> None:
        """Take out an object."""
        self._undecodable.pop(key, None)
        if (old := self._objects.pop(key, None)) is not None:
            self._announce(key, Change(ChangeKind.DELETED, old, None))

    def mark_undecodable(self, key: ObjectKey, error: str) -> None:
        """Note that the newest state cannot be read; the last readable one stays.

        To forget it would look like a deletion, and a deletion has consequences (I2).
        """
        self._undecodable[key] = error
        for callback in self._undecodable_callbacks:
            self._call(key, callback, key, error)

    def complete(self, seen: Collection[ObjectKey], namespace: str | None = None) -> None:
        """A list is complete: what was not in it has vanished, and the callbacks learn so."""
        known = dict.fromkeys((*self._objects, *self._undecodable))
        for key in [key for key in known if key not in seen and namespace in (None, key.namespace)]:
            self.remove(key)
        self._unlisted.discard(namespace)
        if not self._unlisted:
            self.synced.set()

    def _announce(self, key: ObjectKey, change: Change[T]) -> None:
        for index in self._indices.values():
            index.update(key, change.old, change.new)
        for callback in self._callbacks:
            self._call(key, callback, change)

    def _call(self, key: ObjectKey, callback: Callable[..., None], *arguments: object) -> None:
        try:
            callback(*arguments)
        except Exception:  # one handler's fault must not keep others from learning
            log.exception("event handler failed", store=self.name, key=str(key))

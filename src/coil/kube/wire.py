"""List pages and watch lines: bytes in, views out.

Both are decoded in one go, straight into views. When that fails, the page or line is read a second
time, object by object and by metadata only, so that one bad object costs itself and no other (I7).
"""

from functools import cache
from typing import Any, Generic, TypeVar

import msgspec

from coil.kube.errors import Status
from coil.kube.resource import KubeObject, Resource
from coil.support.objects import ObjectKey

T = TypeVar("T", bound=KubeObject)


class Undecodable(msgspec.Struct, frozen=True):
    """An object that does not fit its view; `version` is '' when not even that could be read."""

    key: ObjectKey
    version: str
    error: str


class Page(msgspec.Struct, Generic[T], frozen=True):
    """A part of a list. `version` is where a watch that follows the list begins."""

    items: list[T]
    version: str = ""
    continue_token: str = ""
    undecodable: tuple[Undecodable, ...] = ()


class Added(msgspec.Struct, Generic[T], frozen=True, tag_field="type", tag="ADDED"):
    """The object is new, or new to this watch's selector."""

    object: T


class Modified(msgspec.Struct, Generic[T], frozen=True, tag_field="type", tag="MODIFIED"):
    """The object has changed."""

    object: T


class BareMeta(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Metadata down to the key and the version."""

    name: str = ""
    namespace: str = ""
    resource_version: str = ""

    @property
    def key(self) -> ObjectKey:
        """Namespace and name."""
        return ObjectKey(self.namespace, self.name)


class Bare(msgspec.Struct, frozen=True, gc=False):
    """Any object, of which only the key and the version are read."""

    metadata: BareMeta = BareMeta()


class Deleted(msgspec.Struct, frozen=True, tag_field="type", tag="DELETED"):
    """The object is gone, or no longer matches. Even an unreadable one can go, so it is not read."""

    object: Bare


class Bookmark(msgspec.Struct, frozen=True, tag_field="type", tag="BOOKMARK"):
    """No change up to this version: the place to resume from."""

    object: Bare


class Failed(msgspec.Struct, frozen=True, tag_field="type", tag="ERROR"):
    """The server gives up on this watch and says why."""

    object: Status


Line = Added[T] | Modified[T] | Deleted | Bookmark | Failed | Undecodable


class _ListMeta(msgspec.Struct, frozen=True, rename={"continue_": "continue", "version": "resourceVersion"}):
    version: str = ""
    continue_: str = ""


class _List(msgspec.Struct, Generic[T], frozen=True):
    metadata: _ListMeta = _ListMeta()
    items: list[T] | None = None


class _BareLine(msgspec.Struct, frozen=True):
    object: Bare = Bare()


@cache
def _decoder(of: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(of)


def _undecodable(bare: Bare, error: Exception) -> Undecodable:
    """Paths are those of the object, so that a list and a watch line complain alike."""
    said = str(error).replace("`$.object.", "`$.")
    return Undecodable(bare.metadata.key, bare.metadata.resource_version, said)


def _named(resource: Resource[T], items: list[T]) -> list[T]:
    """Put `kind` and `apiVersion` back, which list replies of core kinds leave out of their items."""
    if not items or getattr(items[0], "kind", None) != "":
        return items
    naming: dict[str, Any] = {"kind": resource.kind, "api_version": resource.api_version}
    return [msgspec.structs.replace(item, **naming) for item in items]  # pyright: ignore[reportArgumentType]


def decode_object(resource: Resource[T], body: bytes) -> T:
    """One object; msgspec.DecodeError when it does not fit its view."""
    return _decoder(resource.view).decode(body)


def decode_page(resource: Resource[T], body: bytes) -> Page[T]:
    """A page of a list; msgspec.DecodeError only when it is no list at all."""
    try:
        reply: _List[T] = _decoder(_List[resource.view]).decode(body)
    except (msgspec.ValidationError, UnicodeDecodeError):
        return _decode_piecewise(resource, body)
    return Page(_named(resource, reply.items or []), reply.metadata.version, reply.metadata.continue_)


def _decode_piecewise(resource: Resource[T], body: bytes) -> Page[T]:
    reply: _List[Any] = _decoder(_List[msgspec.Raw]).decode(body)  # pyright: ignore[reportInvalidTypeArguments]
    items: list[T] = []
    bad: list[Undecodable] = []
    for raw in reply.items or []:
        try:
            items.append(decode_object(resource, raw))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            bad.append(_undecodable(_bare(raw, Bare), error))
    return Page(_named(resource, items), reply.metadata.version, reply.metadata.continue_, tuple(bad))


def decode_line(resource: Resource[T], line: bytes) -> Line[T]:
    """One watch line; never fails."""
    try:
        return _decoder(_line_type(resource.view)).decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return _undecodable(_bare(line, _BareLine).object, error)


@cache
def _line_type(view: Any) -> Any:
    return Added[view] | Modified[view] | Deleted | Bookmark | Failed


B = TypeVar("B", Bare, _BareLine)


def _bare(raw: bytes | msgspec.Raw, kind: type[B]) -> B:
    try:
        return _decoder(kind).decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return kind()

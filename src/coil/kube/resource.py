"""What coil must know about a kind to read and write it through the API server."""

from typing import Generic, Protocol, TypeVar

import msgspec

from coil.kube.errors import Invalid
from coil.support.objects import ObjectMeta


class KubeObject(Protocol):
    """Anything with object metadata; views and our own kinds are such."""

    @property
    def metadata(self) -> ObjectMeta:
        """Name, labels, owners and the rest of meta/v1 ObjectMeta."""
        ...


T = TypeVar("T", bound=KubeObject)


class Resource(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A kind as the API server serves it, and the Struct its objects are decoded into.

    `view` names only the members that coil reads; the decoder skips the rest of the wire.
    """

    group: str = ""
    version: str = "v1"
    plural: str
    kind: str
    view: type[T]
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        """`v1` or `apps/v1`, as manifests write it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def collection_path(self, namespace: str | None = None) -> str:
        """URL path of all objects, or of those in one namespace."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        if self.namespaced and namespace:
            return f"{root}/namespaces/{namespace}/{self.plural}"
        return f"{root}/{self.plural}"

    def object_path(self, name: str, namespace: str | None = None, subresource: str | None = None) -> str:
        """URL path of one object; ValueError when its name or namespace is missing.

        An empty name would make the path that of the collection, and a DELETE there deletes all. Names may
        come from users, as in `secretRef`: `../../kube-system/secrets/x` would be another object.

        Raises:
            Invalid: the name or the namespace is no single part of a path.
        """
        if not name:
            raise ValueError(f"a {self.kind} was addressed without a name")
        if self.namespaced and not namespace:
            raise ValueError(
                f"{self.kind} {name!r} was addressed without a namespace; its kind is namespaced"
            )
        for part in (name, namespace or ""):
            if "/" in part or part in (".", ".."):
                raise Invalid(422, "Invalid", f"{part[:80]!r} cannot name a {self.kind}")
        tail = f"/{subresource}" if subresource else ""
        return f"{self.collection_path(namespace)}/{name}{tail}"

    def __str__(self) -> str:
        return f"{self.plural}.{self.group}" if self.group else self.plural

"""Typed access to the API server: one method per verb.

async with Client(config.load()) as client:
    pod = await client.get(PODS, "web-0", "default")
"""

from collections.abc import AsyncGenerator, Mapping
from enum import Enum
from types import TracebackType
from typing import Any, Self, TypeVar

import msgspec

from coil.kube.config import ClusterConfig
from coil.kube.core import PODS
from coil.kube.errors import Unavailable
from coil.kube.resource import KubeObject, Resource
from coil.kube.transport import Limits, Request, Transport
from coil.kube.wire import Page, decode_object, decode_page
from coil.support.objects import JsonObject

T = TypeVar("T", bound=KubeObject)

Body = Mapping[str, Any] | msgspec.Struct
"""A manifest: plain JSON or a Struct that encodes to it."""

PAGE = 500
"""Objects in a list page: 500 pods decode in 3 ms, which the loop does not feel."""


LOG_DEADLINE = 3.0
"""Seconds for a pod's log; a node that is lost must not hold up whoever asks."""


class PatchKind(Enum):
    """How the server combines a patch with the object; the value is the content type."""

    MERGE = "application/merge-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class Propagation(Enum):
    """What happens to the dependents of a deleted object."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


def _with_version(body: Body, version: str | None) -> Body:
    """Make a patch conditional: the server answers Conflict when the version differs."""
    if version is None:
        return body
    document: JsonObject = msgspec.to_builtins(body)
    metadata = {**document.get("metadata", {}), "resourceVersion": version}
    return {**document, "metadata": metadata}


def _delete_options(
    uid: str | None, version: str | None, grace_seconds: int | None, propagation: Propagation | None
) -> JsonObject:
    options: JsonObject = {"apiVersion": "v1", "kind": "DeleteOptions"}
    preconditions = {"uid": uid, "resourceVersion": version}
    if given := {name: value for name, value in preconditions.items() if value is not None}:
        options["preconditions"] = given
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    if propagation is not None:
        options["propagationPolicy"] = propagation.value
    return options


class Client:
    """One connection pool to one API server.

    Every method raises a subclass of `coil.kube.errors.ApiError`, Timeout included, and nothing else.
    """

    def __init__(self, config: ClusterConfig, limits: Limits | None = None) -> None:
        self._transport = Transport(config, limits)
        self.namespace = config.namespace

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._transport.__aexit__(kind, error, trace)

    async def _object(self, resource: Resource[T], request: Request) -> T:
        body = await self._transport.call(request)
        try:
            return decode_object(resource, body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Unavailable(message=f"undecodable {resource.kind}: {error}", doing=str(request)) from error

    async def get(self, resource: Resource[T], name: str, namespace: str | None = None) -> T:
        """Read one object; NotFound when there is none."""
        path = resource.object_path(name, namespace)
        return await self._object(resource, Request(method="GET", path=path))

    async def pod_log(self, name: str, namespace: str, *, container: str, lines: int, limit: int) -> str:
        """The end of what a container of a pod has printed, at most so many lines and `limit` bytes.

        Of a container that has ended and not begun anew, what it printed before its end. The pod's node is
        asked for it: Timeout after `LOG_DEADLINE` when that does not answer.
        """
        query = {"container": container, "tailLines": str(lines), "limitBytes": str(limit)}
        path = PODS.object_path(name, namespace, "log")
        request = Request(method="GET", path=path, query=query, deadline=LOG_DEADLINE)
        body = await self._transport.call(request)
        return body.decode(errors="replace")

    async def openapi(self, group: str, version: str) -> JsonObject:
        """The OpenAPI v3 document of a group's version; every authenticated user may read it."""
        request = Request(method="GET", path=f"/openapi/v3/apis/{group}/{version}")
        body = await self._transport.call(request)
        try:
            return msgspec.json.decode(body, type=JsonObject)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Unavailable(message=f"undecodable OpenAPI: {error}", doing=str(request)) from error

    async def list_page(  # noqa: PLR0913 -- the verb's own parameters
        self,
        resource: Resource[T],
        namespace: str | None = None,
        *,
        limit: int = PAGE,
        continue_token: str | None = None,
        resource_version: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
    ) -> Page[T]:
        """Read one page (all when `limit` is 0); Gone when the continue token is too old."""
        query = {
            "limit": str(limit) if limit else None,
            "continue": continue_token,
            "resourceVersion": resource_version,
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
        }
        request = Request(method="GET", path=resource.collection_path(namespace), query=query)
        body = await self._transport.call(request)
        try:
            return decode_page(resource, body)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Unavailable(message=f"undecodable list: {error}", doing=str(request)) from error

    async def create(
        self,
        resource: Resource[T],
        body: Body,
        namespace: str | None = None,
        *,
        field_manager: str | None = None,
    ) -> T:
        """Create an object; AlreadyExists when its name is taken. `generateName` is allowed."""
        request = Request(
            method="POST",
            path=resource.collection_path(namespace),
            query={"fieldManager": field_manager},
            body=msgspec.json.encode(body),
        )
        return await self._object(resource, request)

    async def patch(  # noqa: PLR0913 -- the verb's own parameters
        self,
        resource: Resource[T],
        name: str,
        body: Body,
        namespace: str | None = None,
        *,
        kind: PatchKind = PatchKind.MERGE,
        subresource: str | None = None,
        field_manager: str | None = None,
        force: bool = False,
        resource_version: str | None = None,
    ) -> T:
        """Change an object; Conflict when `resource_version` is given and no longer its version.

        `force` takes over fields that another manager owns; it is for `PatchKind.APPLY` only.
        """
        request = Request(
            method="PATCH",
            path=resource.object_path(name, namespace, subresource),
            query={"fieldManager": field_manager, "force": "true" if force else None},
            body=msgspec.json.encode(_with_version(body, resource_version)),
            content_type=kind.value,
        )
        return await self._object(resource, request)

    async def replace(
        self,
        resource: Resource[T],
        name: str,
        body: Body,
        namespace: str | None = None,
        *,
        subresource: str | None = None,
    ) -> T:
        """Write a whole object; Conflict when its metadata.resourceVersion is not the present one."""
        path = resource.object_path(name, namespace, subresource)
        return await self._object(resource, Request(method="PUT", path=path, body=msgspec.json.encode(body)))

    async def delete(  # noqa: PLR0913 -- the verb's own parameters
        self,
        resource: Resource[T],
        name: str,
        namespace: str | None = None,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_seconds: int | None = None,
        propagation: Propagation | None = None,
    ) -> None:
        """Delete one object; Conflict when it is not the one `uid` or `resource_version` names."""
        options = _delete_options(uid, resource_version, grace_seconds, propagation)
        path = resource.object_path(name, namespace)
        await self._transport.call(Request(method="DELETE", path=path, body=msgspec.json.encode(options)))

    def watch(
        self,
        resource: Resource[T],
        namespace: str | None = None,
        *,
        resource_version: str,
        label_selector: str | None = None,
        field_selector: str | None = None,
        timeout_seconds: int = 290,
    ) -> AsyncGenerator[bytes]:
        """The lines of a watch from that version on, undecoded; see `wire.decode_line`."""
        query = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(timeout_seconds),
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
        }
        return self._transport.lines(
            Request(method="GET", path=resource.collection_path(namespace), query=query)
        )

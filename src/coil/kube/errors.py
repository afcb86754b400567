"""What the API server, or the way to it, can answer instead of what was asked for."""

from collections.abc import Mapping
from typing import Any

import msgspec

from coil.support.objects import JsonObject


class StatusMeta(msgspec.Struct, frozen=True, rename="camel"):
    """List metadata of a Status; `continue` of an expired token allows going on inconsistently."""

    continue_: str = msgspec.field(name="continue", default="")


class Status(msgspec.Struct, frozen=True, rename="camel"):
    """meta/v1 Status: the body of every refusal, and the object of an ERROR watch event."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: JsonObject | None = None
    metadata: StatusMeta = StatusMeta()


class ApiError(Exception):
    """A refusal, with the request that met it.

    Args:
        status: HTTP status; 0 when no answer came.
        reason: the API's machine-readable cause, such as `NotFound`.
        message: what the server said.
        details: the Status' `details`, which for Invalid names each bad field.
        doing: the request, as in `GET /api/v1/pods`.
    """

    def __init__(
        self,
        status: int = 0,
        reason: str = "",
        message: str = "",
        details: Mapping[str, Any] | None = None,
        *,
        doing: str = "",
    ) -> None:
        super().__init__(status, reason, message, details)
        self.status = status
        self.reason = reason
        self.message = message
        self.details: Mapping[str, Any] = details or {}
        self.doing = doing

    @property
    def namespace_terminating(self) -> bool:
        """Nothing can be created because the namespace is being deleted, and all that is in it with it."""
        causes = self.details.get("causes") or ()
        return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)

    def __str__(self) -> str:
        answer = " ".join(part for part in (str(self.status or ""), self.reason) if part)
        return ": ".join(part for part in (self.doing, answer, self.message) if part)


class NotFound(ApiError):
    """404: no such object, or no such kind."""


class Conflict(ApiError):
    """409: the object is not (or no longer) what the precondition says."""


class AlreadyExists(ApiError):
    """409: an object of that name is there already."""


class Gone(ApiError):
    """410: the version or continue token is too old; only a new list helps."""


class Invalid(ApiError):
    """400 or 422: the object is refused as it is; the same request will fail again."""


class Unauthorized(ApiError):
    """401: the credentials are missing, wrong or expired."""


class Forbidden(ApiError):
    """403: RBAC or an admission plugin (quota, policy) says no."""


class TooManyRequests(ApiError):
    """429: the server asks to come back later, and did so until the deadline."""


class Unavailable(ApiError):
    """5xx, or no usable answer: refused, reset, cut off."""


class Timeout(Unavailable):
    """No answer before the request's deadline; a write may or may not have been done."""


_BY_STATUS: dict[int, type[ApiError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
    504: Timeout,
}


def error_class(code: int, reason: str) -> type[ApiError]:
    """The class for an HTTP status and the API's reason."""
    if reason == "AlreadyExists":
        return AlreadyExists
    if reason in {"Expired", "Gone"}:
        return Gone
    return _BY_STATUS.get(code, Unavailable if code >= 500 else ApiError)  # noqa: PLR2004 -- HTTP


def from_status(status: Status, *, doing: str = "") -> ApiError:
    """The error that a Status object describes."""
    kind = error_class(status.code, status.reason)
    return kind(status.code, status.reason, status.message, status.details, doing=doing)


def from_reply(code: int, body: bytes, *, doing: str = "") -> ApiError:
    """The error that an HTTP reply describes; its body may be anything."""
    try:
        status = msgspec.json.decode(body, type=Status)
    except (msgspec.DecodeError, UnicodeDecodeError):
        status = Status(message=body[:200].decode(errors="replace").strip())
    return from_status(msgspec.structs.replace(status, code=code), doing=doing)

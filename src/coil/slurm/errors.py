"""What can go wrong between coil and slurmrestd, sorted by what a caller may conclude.

Only `NotFound` is knowledge about a node or a reservation; every other error means "unknown", and unknown
is not drained (invariant I2).
"""

from collections.abc import Mapping, Sequence

import msgspec


class ErrorDetail(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry of the `errors` list of an answer."""

    error: str = ""
    error_number: int = 0
    description: str = ""
    source: str = ""


class SlurmError(Exception):
    """A call that gave no usable answer.

    The text joins the HTTP status and the `errors[].error` texts of the answer, and names the call.
    """

    def __init__(
        self, call: str, reason: str, *, status: int = 0, details: Sequence[ErrorDetail] = ()
    ) -> None:
        self.call = call
        self.reason = reason
        self.status = status
        self.details = tuple(details)
        super().__init__(f"Slurm {call}: {': '.join([reason, *texts(self.details)])}")


class Unreachable(SlurmError):
    """No connection to slurmrestd: refused, cut, or no answer within the deadline."""


class ControllerDown(SlurmError):
    """The answer of slurmrestd is that it cannot reach slurmctld."""


class Unauthorized(SlurmError):
    """The token was refused: wrong key, expired, or clocks that differ."""


class NotFound(SlurmError):
    """The answer of slurmctld is that the named node or reservation does not exist."""


class Rejected(SlurmError):
    """The request was understood and refused; the text says why."""


class SomeRefused(Rejected):
    """An update of many nodes was refused for some of them; `failed` says which and why.

    All other named nodes are updated.
    """

    def __init__(self, call: str, failed: Mapping[str, SlurmError]) -> None:
        self.failed = dict(failed)
        name, error = next(iter(self.failed.items()))
        details = tuple(detail for failure in self.failed.values() for detail in failure.details)
        reason = f"{len(self.failed)} nodes refused, {name}: {error.reason}"
        super().__init__(call, reason, status=error.status, details=details)


class NotServed(SlurmError):
    """The address serves no path or no API version that coil knows."""


class BadReply(SlurmError):
    """An answer that is no whole, valid answer to the request: nothing may be concluded from it."""


def texts(details: Sequence[ErrorDetail]) -> list[str]:
    """The distinct texts of the errors, in order."""
    return list(dict.fromkeys(detail.error or detail.description for detail in details if detail))

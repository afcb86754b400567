"""AdmissionReview on the wire (admission.k8s.io/v1 and v1beta1, which have the same members)."""

from collections.abc import Sequence

import msgspec

from coil.support.objects import JsonObject

VERSIONS = frozenset({"admission.k8s.io/v1", "admission.k8s.io/v1beta1"})
CREATE, UPDATE = "CREATE", "UPDATE"

OK, BAD_REQUEST, FORBIDDEN = 200, 400, 403
_REASONS = {BAD_REQUEST: "BadRequest", FORBIDDEN: "Forbidden"}


class ReviewError(Exception):
    """The body is no AdmissionReview that can be answered."""


class Request(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What is asked. `object` and `old_object` are None where there is none."""

    uid: str
    operation: str = ""
    name: str = ""
    namespace: str = ""
    dry_run: bool | None = None
    object: JsonObject | None = None
    old_object: JsonObject | None = None


class Review(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A question; the answer goes back under the same apiVersion and kind."""

    api_version: str
    kind: str
    request: Request


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What is answered. A `code` of 200 allows; the message says why not, or nothing."""

    code: int = OK
    message: str = ""
    warnings: Sequence[str] = ()

    @property
    def allowed(self) -> bool:
        """Whether the request may go on."""
        return self.code == OK


_DECODER = msgspec.json.Decoder(Review)


def read(body: bytes) -> Review:
    """Decode a review.

    Raises:
        ReviewError: it is none, or of a version that is not known here.
    """
    try:
        review = _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ReviewError(f"the body is no AdmissionReview: {error}") from None
    if review.kind != "AdmissionReview" or review.api_version not in VERSIONS:
        known = " and ".join(sorted(VERSIONS))
        raise ReviewError(
            f"{review.api_version}, {review.kind}: only AdmissionReviews of {known} are answered"
        )
    return review


def write(review: Review, answer: Answer) -> bytes:
    """Encode the answer to a review."""
    status: JsonObject = {"code": answer.code}
    if not answer.allowed:
        status |= {"status": "Failure", "message": answer.message, "reason": _REASONS[answer.code]}
    response: JsonObject = {"uid": review.request.uid, "allowed": answer.allowed, "status": status}
    if answer.warnings:
        response["warnings"] = list(answer.warnings)
    document = {"kind": review.kind, "apiVersion": review.api_version, "response": response}
    return msgspec.json.encode(document)

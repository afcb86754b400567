"""Answers of the server as errors that say what, where and why."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coil.kube import errors
from coil.kube.errors import Status, from_reply, from_status


def test_an_error_says_what_was_done_and_what_came_back() -> None:
    error = from_reply(404, b'{"reason":"NotFound","message":"pods \\"a\\" not found"}', doing="GET /x")
    assert str(error) == 'GET /x: 404 NotFound: pods "a" not found'


def test_an_error_without_an_answer_says_so() -> None:
    error = errors.Unavailable(message="connection refused", doing="GET /x")
    assert str(error) == "GET /x: connection refused"
    assert error.status == 0


def test_details_are_kept() -> None:
    body = b'{"reason":"Invalid","details":{"causes":[{"field":"spec.x"}]}}'
    assert from_reply(422, body).details["causes"][0]["field"] == "spec.x"


def test_the_http_status_counts_where_the_body_says_otherwise() -> None:
    assert isinstance(from_reply(404, b'{"code":500,"reason":"NotFound"}'), errors.NotFound)


@pytest.mark.parametrize("reason", ["Expired", "Gone"])
def test_gone_is_told_by_its_reason_too(reason: str) -> None:
    """Events of a watch need not carry a code."""
    assert isinstance(from_status(Status(reason=reason)), errors.Gone)


@pytest.mark.parametrize(
    ("code", "kind"),
    [(418, errors.ApiError), (500, errors.Unavailable), (599, errors.Unavailable), (409, errors.Conflict)],
)
def test_unknown_answers_have_a_class(code: int, kind: type[errors.ApiError]) -> None:
    assert type(from_reply(code, b"")) is kind


def test_a_timeout_is_a_way_of_being_unavailable() -> None:
    assert issubclass(errors.Timeout, errors.Unavailable)


@given(st.integers(400, 599), st.binary(max_size=300))
def test_no_body_makes_reading_an_error_fail(code: int, body: bytes) -> None:
    error = from_reply(code, body, doing="GET /x")
    assert error.status == code
    assert str(error).startswith("GET /x")


def test_a_namespace_that_ends_is_told_by_its_cause() -> None:
    body = b'{"reason":"Forbidden","details":{"causes":[{"reason":"NamespaceTerminating"}]}}'
    assert from_reply(403, body).namespace_terminating
    assert not from_reply(403, b'{"reason":"Forbidden","message":"quota"}').namespace_terminating

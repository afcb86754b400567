"""Claims about AdmissionReviews on the wire (spec: control-plane 13 and 22)."""

import json

import pytest

from coil.admission.review import Answer, ReviewError, read, write
from coil.admission.verdict import one_text, verdict


def body(version: str = "admission.k8s.io/v1", **request: object) -> bytes:
    document = {"apiVersion": version, "kind": "AdmissionReview", "request": {"uid": "u", **request}}
    return json.dumps(document).encode()


@pytest.mark.parametrize("version", ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"])
def test_the_answer_has_the_version_of_the_question(version: str) -> None:
    answer = json.loads(write(read(body(version)), Answer(code=403, message="no", warnings=["w"])))
    assert (answer["apiVersion"], answer["kind"]) == (version, "AdmissionReview")
    assert answer["response"] == {
        "uid": "u",
        "allowed": False,
        "status": {"code": 403, "status": "Failure", "message": "no", "reason": "Forbidden"},
        "warnings": ["w"],
    }


def test_what_is_allowed_has_code_200() -> None:
    answer = json.loads(write(read(body()), Answer()))
    assert answer["response"] == {"uid": "u", "allowed": True, "status": {"code": 200}}


def test_null_objects_and_members_that_nobody_reads_are_fine() -> None:
    review = read(body(object=None, oldObject=None, dryRun=None, userInfo={"username": "ann"}))
    assert (review.request.object, review.request.old_object, review.request.dry_run) == (None, None, None)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff",
        b"[" * 100_000,
        body("admission.k8s.io/v2"),
        body().replace(b"AdmissionReview", b"Pod"),
        body(object="text"),
    ],
)
def test_anything_else_is_no_review(text: bytes) -> None:
    with pytest.raises(ReviewError):
        read(text)


def test_texts_are_told_once_and_on_one_line() -> None:
    found = verdict(["a\nb", "a\nb", "c"], ["w", "w", "c\r"], before=["c"])
    assert found.errors == ["a b"]
    assert found.warnings == ["c", "w", "c "]
    assert one_text(["a"]) == "a"
    assert one_text(["a", "b"]) == "[a, b]"

"""Bytes of lists and watches to views, and what happens to those that do not fit."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coil.kube.core import PODS, SECRETS, SERVICES
from coil.kube.transport import LineBuffer
from coil.kube.wire import (
    Added,
    Bookmark,
    Deleted,
    Failed,
    Modified,
    Undecodable,
    decode_line,
    decode_object,
    decode_page,
)
from coil.support.objects import ObjectKey

META = {"name": "a", "namespace": "ns", "resourceVersion": "7"}


def line(sort: str, **item: object) -> bytes:
    return msgspec.json.encode({"type": sort, "object": item})


def page(*items: object, **metadata: object) -> bytes:
    return msgspec.json.encode({"kind": "List", "metadata": metadata, "items": list(items)})


@pytest.mark.parametrize(("kind", "sort"), [("ADDED", Added), ("MODIFIED", Modified)])
def test_a_change_carries_the_view(kind: str, sort: type) -> None:
    decoded = decode_line(PODS, line(kind, metadata=META, spec={"nodeName": "n1", "containers": [{}]}))
    assert isinstance(decoded, sort)
    assert decoded.object.spec.node_name == "n1"


def test_a_deletion_is_read_even_when_the_object_cannot_be() -> None:
    """Otherwise an object with an odd member would stay in the store for ever."""
    decoded = decode_line(PODS, line("DELETED", metadata=META, spec={"nodeName": 7}))
    assert isinstance(decoded, Deleted)
    assert decoded.object.metadata.key == ObjectKey("ns", "a")
    assert decoded.object.metadata.resource_version == "7"


def test_a_bookmark_carries_its_version() -> None:
    decoded = decode_line(PODS, line("BOOKMARK", kind="Pod", metadata={"resourceVersion": "900"}))
    assert isinstance(decoded, Bookmark)
    assert decoded.object.metadata.resource_version == "900"


def test_an_error_carries_its_status() -> None:
    decoded = decode_line(PODS, line("ERROR", kind="Status", code=410, reason="Expired", message="old"))
    assert isinstance(decoded, Failed)
    assert (decoded.object.code, decoded.object.reason) == (410, "Expired")


def test_an_undecodable_line_keeps_key_version_and_cause() -> None:
    decoded = decode_line(PODS, line("MODIFIED", metadata=META, spec={"nodeName": 7}))
    assert decoded == Undecodable(
        ObjectKey("ns", "a"), "7", "Expected `str`, got `int` - at `$.spec.nodeName`"
    )


@given(st.binary(max_size=50))
def test_no_bytes_make_a_line_fail(raw: bytes) -> None:
    decoded = decode_line(PODS, raw)
    assert isinstance(decoded, Undecodable)
    assert decoded.version == ""


def test_a_page_has_its_items_version_and_token() -> None:
    decoded = decode_page(PODS, page({"metadata": META}, resourceVersion="9", **{"continue": "next"}))
    assert [item.metadata.name for item in decoded.items] == ["a"]
    assert (decoded.version, decoded.continue_token, decoded.undecodable) == ("9", "next", ())


def test_one_bad_item_leaves_the_others() -> None:
    bad = {"metadata": {**META, "name": "bad"}, "spec": {"nodeName": 7}}
    decoded = decode_page(PODS, page({"metadata": META}, bad, resourceVersion="9"))
    assert [item.metadata.name for item in decoded.items] == ["a"]
    assert [one.key.name for one in decoded.undecodable] == ["bad"]
    assert decoded.version == "9"


def test_an_item_that_is_no_object_has_no_key() -> None:
    decoded = decode_page(PODS, page(7, {"metadata": META}))
    assert decoded.undecodable[0].key == ObjectKey("", "")
    assert len(decoded.items) == 1


def test_a_list_may_have_no_items() -> None:
    assert decode_page(PODS, b'{"metadata":{"resourceVersion":"1"},"items":null}').items == []
    assert decode_page(PODS, b'{"metadata":{"resourceVersion":"1"}}').items == []


@pytest.mark.parametrize("body", [b"<html>", b"", b'{"items":7}', b"[]"])
def test_what_is_no_list_is_an_error(body: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        decode_page(PODS, body)


def test_items_get_back_the_kind_that_lists_leave_out() -> None:
    decoded = decode_page(SERVICES, page({"metadata": META, "spec": {"type": "ClusterIP"}}))
    assert (decoded.items[0].kind, decoded.items[0].api_version) == ("Service", "v1")


def test_a_kind_that_is_there_stays() -> None:
    decoded = decode_page(SERVICES, page({"kind": "Odd", "apiVersion": "x/v1", "metadata": META}))
    assert decoded.items[0].kind == "Odd"


def test_secret_data_is_decoded() -> None:
    secret = decode_object(SECRETS, b'{"metadata":{"name":"s"},"data":{"slurm.key":"AAEC"}}')
    assert secret.data == {"slurm.key": b"\x00\x01\x02"}


@given(st.lists(st.binary(max_size=8)), st.data())
def test_lines_do_not_depend_on_how_the_stream_is_cut(parts: list[bytes], data: st.DataObject) -> None:
    stream = b"\n".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    buffer, lines = LineBuffer(), list[bytes]()
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        lines.extend(buffer.feed(stream[start:end]))
    *complete, _ = stream.split(b"\n")
    assert lines == [one for one in complete if one.strip()]

"""One answer is read, whole or not at all, whatever follows it."""

import asyncio

import pytest

from coil.slurm.http1 import Answer, ProtocolError, encode, read_answer

pytestmark = pytest.mark.asyncio


async def read(*parts: bytes, limit: int = 1 << 16) -> Answer:
    reader = asyncio.StreamReader(limit=limit)
    for part in parts:
        reader.feed_data(part)
    reader.feed_eof()
    return await read_answer(reader)


TWICE = (
    b"HTTP/1.1 422 UNPROCESSABLE CONTENT\r\nConnection: Close\r\nContent-Length: 2\r\n\r\n{}"
    b"HTTP/1.1 422 UNPROCESSABLE CONTENT\r\nContent-Length: 3\r\n\r\nbad"
)


async def test_an_error_sent_twice_is_read_once() -> None:
    """What slurmrestd 26.05 sends for every error."""
    assert await read(TWICE) == (422, b"{}")


@pytest.mark.parametrize("cut", range(1, 80))
async def test_half_an_answer_is_none(cut: int) -> None:
    whole = TWICE.split(b"{}")[0] + b"{}"
    with pytest.raises(ProtocolError, match=r"cut|not an HTTP answer"):
        await read(whole[: -cut if cut < len(whole) else 0])


async def test_not_modified_has_no_body() -> None:
    assert await read(b"HTTP/1.1 304 NOT MODIFIED\r\nContent-Length: 5\r\n\r\n") == (304, b"")


async def test_chunks_are_joined() -> None:
    body = b"4;ext=1\r\nWiki\r\n5\r\npedia\r\n0\r\n\r\n"
    assert await read(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n", body) == (200, b"Wikipedia")


async def test_without_a_length_the_end_of_the_connection_ends_the_body() -> None:
    assert await read(b"HTTP/1.1 200 OK\r\n\r\n", b"all") == (200, b"all")


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (b"", "cut after 0 bytes"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "not an HTTP answer"),
        (b"HTTP/1.1 OK\r\n\r\n", "not an HTTP answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", "no number"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "no number"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "chunk size"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-4\r\n", "chunk size"),
    ],
)
async def test_what_is_no_answer_is_told(answer: bytes, complaint: str) -> None:
    with pytest.raises(ProtocolError, match=complaint):
        await read(answer)


async def test_endless_headers_are_given_up() -> None:
    with pytest.raises(ProtocolError, match="headers"):
        await read(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 4096, limit=1024)


async def test_a_request_has_a_length_only_with_a_body() -> None:
    assert (
        encode("GET", "/x?y=1", "h:1", {"A": "b"}, None)
        == b"GET /x?y=1 HTTP/1.1\r\nHost: h:1\r\nA: b\r\n\r\n"
    )
    assert (
        encode("POST", "/x", "h", {}, b"{}") == b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}"
    )


@pytest.mark.parametrize(("target", "token"), [("/a\r\nX: y", "t"), ("/a", "t\r\nX: y"), ("/a", "t\0")])
async def test_no_text_can_add_a_header(target: str, token: str) -> None:
    with pytest.raises(ValueError, match="control characters"):
        encode("GET", target, "h", {"T": token}, None)

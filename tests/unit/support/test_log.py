"""Log lines, and the settings they come from."""

import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import structlog
import time_machine

from coil.support.log import LogSettings, configure, get_logger

MOMENT = datetime(2026, 1, 31, 12, 0, 5, 250_000, tzinfo=UTC)


@pytest.fixture(autouse=True)
def own_configuration() -> Iterator[None]:
    before = structlog.get_config()
    yield
    structlog.configure(**before)


def logged(**settings: Any) -> list[str]:
    out = io.StringIO()
    configure(LogSettings(**settings), out)
    log = get_logger("nodeset-controller", cluster="c1")
    with time_machine.travel(MOMENT, tick=False):
        log.debug("looked")
        log.info("scaled", pods=3)
        try:
            raise KeyError("x")  # noqa: TRY301 -- the traceback is the point
        except KeyError:
            log.exception("failed")
    return out.getvalue().splitlines()


def test_json_lines_have_the_members_of_zap_first() -> None:
    lines = [json.loads(line) for line in logged()]
    assert lines[0] == {
        "level": "info",
        "ts": "2026-01-31T12:00:05Z",
        "logger": "nodeset-controller",
        "msg": "scaled",
        "cluster": "c1",
        "pods": 3,
    }
    assert list(lines[0])[:4] == ["level", "ts", "logger", "msg"]


def test_errors_carry_their_traceback() -> None:
    assert "KeyError: 'x'" in json.loads(logged()[1])["exception"]


def test_a_high_stacktrace_level_leaves_tracebacks_out() -> None:
    assert "exception" not in json.loads(logged(stacktrace_level="panic")[1])


@pytest.mark.parametrize(
    ("level", "messages"),
    [
        ("debug", ["looked", "scaled", "failed"]),
        ("5", ["looked", "scaled", "failed"]),
        ("info", ["scaled", "failed"]),
        ("0", ["scaled", "failed"]),
        ("error", ["failed"]),
        ("panic", []),
    ],
)
def test_levels(level: str, messages: list[str]) -> None:
    assert [json.loads(line)["msg"] for line in logged(level=level)] == messages


@pytest.mark.parametrize(
    ("encoding", "stamp"),
    [
        ("epoch", 1769860805.25),
        ("millis", 1769860805250.0),
        ("nano", 1769860805250000000),
        ("iso8601", "2026-01-31T12:00:05.250Z"),
        ("rfc3339", "2026-01-31T12:00:05Z"),
        ("rfc3339nano", "2026-01-31T12:00:05.250000Z"),
    ],
)
def test_time_encodings(encoding: str, stamp: object) -> None:
    assert json.loads(logged(time_encoding=encoding)[0])["ts"] == stamp


def test_development_means_console_and_debug() -> None:
    lines = logged(development=True)
    assert "looked" in lines[0]
    assert "nodeset-controller" in lines[0]
    assert not lines[0].startswith("{")


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("level", "loud", "log level 'loud' is not one of debug, info, error, panic"),
        ("encoder", "xml", "log encoder 'xml'"),
        ("time_encoding", "stardate", "time encoding 'stardate'"),
    ],
)
def test_unknown_settings_are_refused_with_the_known_ones(setting: str, value: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        configure(LogSettings(**{setting: value}), io.StringIO())


def test_values_that_json_does_not_know_are_written_as_text() -> None:
    out = io.StringIO()
    configure(LogSettings(), out)
    get_logger("x").info("odd", error=KeyError("k"))
    assert json.loads(out.getvalue())["error"] == "'k'"

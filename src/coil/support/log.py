"""Structured logs: one JSON object (or one readable line) per entry, with zap's member names.

The manager's `--zap-*` flags (spec: control-plane 15.1) map onto `LogSettings`.
"""

import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TextIO, cast

import msgspec
import structlog
from structlog.dev import plain_traceback
from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "error": logging.ERROR, "panic": logging.CRITICAL}


class LogSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What to log and in which form.

    `level` and `stacktrace_level` are debug, info, error, panic or a number of zap's verbosity
    (1 and above mean debug). `development` is console form, debug level and early stack traces.
    """

    level: str = ""
    encoder: str = ""
    development: bool = False
    stacktrace_level: str = ""
    time_encoding: str = "rfc3339"


def parse_level(text: str) -> int:
    """A zap level as a level of the standard library; ValueError names the accepted ones."""
    if text.lower() in LEVELS:
        return LEVELS[text.lower()]
    if text.isdecimal():
        return logging.DEBUG if int(text) > 0 else logging.INFO
    raise ValueError(f"log level {text!r} is not one of {', '.join(LEVELS)} or a number of 0 and above")


def _epoch(moment: datetime) -> float:
    return moment.timestamp()


def _epoch_millis(moment: datetime) -> float:
    return moment.timestamp() * 1e3


def _epoch_nanos(moment: datetime) -> int:
    return int(moment.timestamp() * 1e6) * 1000


def _iso8601(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def _rfc3339(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _rfc3339nano(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


TIME_ENCODINGS: dict[str, Callable[[datetime], str | float]] = {
    "epoch": _epoch,
    "millis": _epoch_millis,
    "nano": _epoch_nanos,
    "iso8601": _iso8601,
    "rfc3339": _rfc3339,
    "rfc3339nano": _rfc3339nano,
}


def _stamp(encoding: str) -> Processor:
    if encoding not in TIME_ENCODINGS:
        raise ValueError(f"time encoding {encoding!r} is not one of {', '.join(TIME_ENCODINGS)}")
    encode = TIME_ENCODINGS[encoding]

    def stamp(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        event["ts"] = encode(datetime.now(UTC))
        return event

    return stamp


def _stacks(threshold: int) -> Processor:
    def stacks(_logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        if logging.getLevelNamesMapping().get(method.upper(), logging.ERROR) < threshold:
            event.pop("exc_info", None)
        return event

    return stacks


def _json(_logger: WrappedLogger, _method: str, event: EventDict) -> str:
    ordered = {"level": event.pop("level"), "ts": event.pop("ts"), "logger": event.pop("logger_name", "coil")}
    ordered |= {"msg": event.pop("event"), **event}
    return msgspec.json.encode(ordered, enc_hook=str).decode()


def _renderer(encoder: str) -> list[Processor]:
    if encoder == "json":
        return [structlog.processors.format_exc_info, _json]
    if encoder == "console":
        return [
            cast(
                "Processor",
                structlog.dev.ConsoleRenderer(
                    timestamp_key="ts",
                    colors=False,
                    exception_formatter=plain_traceback,  # locals hold secrets
                ),
            )
        ]
    raise ValueError(f"log encoder {encoder!r} is neither 'json' nor 'console'")


def configure(settings: LogSettings, out: TextIO | None = None) -> None:
    """Set up logging for the whole process; ValueError when a setting is unknown."""
    level = parse_level(settings.level or ("debug" if settings.development else "info"))
    stacks = parse_level(settings.stacktrace_level or ("info" if settings.development else "error"))
    encoder = settings.encoder or ("console" if settings.development else "json")
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            _stamp(settings.time_encoding),
            _stacks(stacks),
            *_renderer(encoder),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(out or sys.stderr),
        cache_logger_on_first_use=False,
    )


def get_logger(name: str, **members: Any) -> FilteringBoundLogger:
    """A logger that writes `name` and `members` with every entry."""
    return cast("FilteringBoundLogger", structlog.get_logger(logger_name=name, **members))

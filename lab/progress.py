"""Lines that tell a person what the lab does and how long it took."""

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console

_console = Console(stderr=True, highlight=False)
_start = time.monotonic()
_lock = threading.Lock()


def say(text: str) -> None:
    """Print one line, stamped with the seconds since the command began."""
    with _lock:
        _console.print(f"[dim]{time.monotonic() - _start:6.1f} s[/dim]  {text}", soft_wrap=True)


@contextmanager
def step(what: str) -> Generator[None]:
    """Say that `what` is done and how many seconds it took, or that it failed."""
    begin = time.monotonic()
    try:
        yield
    except BaseException:
        say(f"[red]{what}: failed after {time.monotonic() - begin:.1f} s[/red]")
        raise
    say(f"{what} [dim]({time.monotonic() - begin:.1f} s)[/dim]")

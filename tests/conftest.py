"""What holds for all tests."""

import asyncio
import os
from collections.abc import Callable, Mapping

import pytest
import uvloop
from hypothesis import HealthCheck, settings

# How long an example takes says something about the machine, not about the claim under test. The same
# examples every time: whether a change passes must not hang on luck. COIL_EXAMPLES asks for a new search.
settings.register_profile(
    "coil",
    deadline=None,
    derandomize="COIL_EXAMPLES" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("coil")


def pytest_configure() -> None:
    """Keep Python 3.11 from making an event loop nobody closes.

    pytest-asyncio asks for the current loop before it makes its own; until a loop was set once, asking makes
    one, and its ResourceWarning then fails whatever test runs when it is collected.
    """
    asyncio.set_event_loop(None)


def pytest_asyncio_loop_factories(item: pytest.Item) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Tests with real servers run on the operator's own event loop; unit tests bend the time of theirs."""
    if "unit" in item.path.parts:
        return {"asyncio": asyncio.new_event_loop}
    return {"uvloop": uvloop.new_event_loop}

"""What holds for all tests."""

import asyncio
import os

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

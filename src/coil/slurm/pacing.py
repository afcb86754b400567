"""Long work in short steps, so that the event loop stays responsive."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TypeVar

T = TypeVar("T")

BATCH = 500
"""Records handled at a time: decoding 500 nodes takes about 3 ms."""


async def batches(items: Sequence[T], size: int = BATCH) -> AsyncIterator[Sequence[T]]:
    """Give the items in parts, letting others run between two parts."""
    for start in range(0, len(items), size):
        if start:
            await asyncio.sleep(0)
        yield items[start : start + size]

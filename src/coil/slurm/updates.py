"""Bulk updates: as few calls as possible, and one bad node does not stop the others."""

from collections.abc import Awaitable, Callable, Sequence

from coil.slurm.errors import NotFound, Rejected, SlurmError, SomeRefused

Send = Callable[[Sequence[str]], Awaitable[None]]
"""Updates all the given nodes in one call."""


async def update_each(names: Sequence[str], send: Send) -> None:
    """Update all nodes; a part that is refused is halved until the refused nodes stand alone.

    Slurm refuses a whole hostlist when one name in it is unknown, and may stop in the middle when a state
    is not allowed for one node. Updates are idempotent, so sending the halves again is safe. One bad node
    among n costs about 2 log2(n) more calls.

    Raises:
        SomeRefused: which nodes were refused, and why; all others are updated.
        SlurmError: a call failed for a reason that is not about the nodes.
    """
    failed: dict[str, SlurmError] = {}
    parts = [names] if names else []
    while parts:
        part = parts.pop()
        try:
            await send(part)
        except (Rejected, NotFound) as error:
            middle = len(part) // 2
            if middle:
                parts += [part[middle:], part[:middle]]
            else:
                failed[part[0]] = error
    if failed:
        raise SomeRefused("node update", failed)

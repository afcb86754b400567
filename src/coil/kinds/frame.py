"""What every kind's controller has in common: how it is set up, and what a pass comes to."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from coil.kinds.runtime import Runtime
from coil.kinds.status import Problem
from coil.kinds.steps import PassFailedError
from coil.kube.controller import DONE, After, Controller, Result
from coil.kube.queue import Queue
from coil.kube.store import Store
from coil.kube.workset import Spacing
from coil.support.objects import ObjectKey

PERIOD_S = 60.0
"""While something is wrong: the longest time until the next try (invariant I6)."""


def control(
    runtime: Runtime,
    name: str,
    kind: str,
    reconcile: Callable[[ObjectKey], Awaitable[Result]],
    stores: Sequence[Store[Any]],
    spacing: Spacing | None = None,
) -> Queue:
    """Run these passes while the process leads, once the stores are filled.

    Gives the queue of the keys, which the kind's watches fill. `kind`, in lower case, has its number of
    workers in the manager's flags; `spacing` says how changes that come in a storm are thinned out.
    """
    queue = Queue(name, spacing=spacing)
    controller = Controller(name, reconcile, workers=runtime.workers(kind), caches=stores, queue=queue)
    runtime.add(controller)
    return controller.queue


def outcome(problems: Sequence[Problem], otherwise: Result = DONE) -> Result:
    """What a pass comes to that met these problems; `otherwise` when there were none.

    Raises:
        PassFailedError: one of them may be cured by trying again soon.
    """
    if any(problem.retry for problem in problems):
        raise PassFailedError(problems)
    return After(PERIOD_S) if problems else otherwise

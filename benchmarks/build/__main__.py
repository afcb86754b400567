"""What pure work costs at size, beside the obvious way to do it: `make bench-build`.

Figures are CPU milliseconds, the best of five runs in one process; read the ratio, not the number.
"""

import copy
import json
import time
from collections.abc import Callable
from typing import Any

import msgspec

from coil.api.controller import Controller
from coil.api.nodeset import NodeSet
from coil.build.nodeset import revision_hash, stamp_ordinal, template
from coil.build.worker import PodInputs
from coil.support.hostlist import compress, expand

PODS = 5_000
NAMES = [f"gpu-{number:05d}" for number in range(10_000)]
META = {"name": "gpu", "namespace": "slurm", "uid": "u"}
KEY = {"name": "keys", "key": "slurm.key"}


def main() -> None:
    """Print one line for each kind of work."""
    nodeset = msgspec.convert({"metadata": META, "spec": {"slurmd": {"image": "i"}}}, NodeSet)
    controller = msgspec.convert({"metadata": META, "spec": {"slurmKeyRef": KEY}}, Controller)
    made = template(nodeset, PodInputs(controller=controller), revision_hash(nodeset))
    pod = stamp_ordinal(made, 0)
    encoder = msgspec.json.Encoder()
    report(
        f"stamp and encode {PODS} pods",
        lambda: [encoder.encode(stamp_ordinal(made, ordinal)) for ordinal in range(PODS)],
        lambda: [json.dumps(copy.deepcopy(pod)) for _ in range(PODS)],
    )
    text = compress(NAMES)
    report(f"compress {len(NAMES)} names", lambda: compress(NAMES), lambda: sorted(NAMES, key=by_number))
    report(
        f"expand {len(NAMES)} names", lambda: expand(text), lambda: [numbered(n) for n in range(len(NAMES))]
    )


def numbered(number: int) -> str:
    """One name of the list."""
    return f"gpu-{number:05d}"


def by_number(name: str) -> tuple[str, int]:
    """The least that any compressor has to find out about a name."""
    prefix, _, number = name.rpartition("-")
    return prefix, int(number)


def report(what: str, ours: Callable[[], Any], baseline: Callable[[], Any]) -> None:
    """Print our time, the baseline's and their ratio."""
    mine, other = best(ours), best(baseline)
    print(f"{what:28} {mine * 1e3:8.1f} ms   baseline {other * 1e3:8.1f} ms   ratio {mine / other:5.2f}")


def best(work: Callable[[], Any]) -> float:
    """CPU seconds of the fastest of five runs."""
    times: list[float] = []
    for _ in range(5):
        begin = time.process_time()
        work()
        times.append(time.process_time() - begin)
    return min(times)


main()

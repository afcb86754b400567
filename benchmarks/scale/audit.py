"""The operator's requests to the API server, from its audit log."""

import json
from collections import Counter
from pathlib import Path

import yaml

READS = frozenset({"get", "list", "watch"})
_BOOKKEEPING = frozenset({"leases"})


def policy(user: str) -> str:
    """An audit policy that notes every request of one user and nobody else's."""
    document = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [{"level": "Metadata", "users": [user]}, {"level": "None"}],
    }
    return yaml.safe_dump(document)


class Audit:
    """Reads the log as it grows."""

    def __init__(self, log: Path) -> None:
        self._log = log
        self._offset = 0
        self._rest = b""
        self._requests: Counter[str] = Counter()

    def so_far(self) -> Counter[str]:
        """Requests since the start by `verb resource`; those for leases are left out."""
        with self._log.open("rb") as log:
            log.seek(self._offset)
            text = log.read()
        self._offset += len(text)
        *lines, self._rest = (self._rest + text).split(b"\n")
        self._requests.update(kind for line in lines if (kind := _kind(json.loads(line))))
        return self._requests.copy()


def writes(requests: Counter[str]) -> int:
    """How many of them change something."""
    return sum(count for kind, count in requests.items() if kind.partition(" ")[0] not in READS)


def _kind(entry: dict[str, object]) -> str:
    verb, about = str(entry["verb"]), entry.get("objectRef")
    # A watch is noted when it begins and again when it ends.
    if not isinstance(about, dict) or (verb == "watch" and entry["stage"] != "ResponseStarted"):
        return ""
    resource = str(about.get("resource", ""))
    if resource in _BOOKKEEPING:
        return ""
    part = about.get("subresource")
    return f"{verb} {resource}/{part}" if part else f"{verb} {resource}"

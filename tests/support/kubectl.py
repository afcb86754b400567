"""kubectl as a person uses it, and waiting for a condition instead of for a time."""

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


def wait_until(check: Callable[[], T | None], *, within: float, what: str, every: float = 0.5) -> T:
    """Poll `check` until it returns something true; fail with its last answer after `within` seconds."""
    deadline = time.monotonic() + within
    while True:
        answer = check()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within:g} s: {what}; last answer: {answer!r}")
        time.sleep(every)


@dataclass(frozen=True)
class Kubectl:
    """One cluster seen through one kubeconfig."""

    binary: str
    kubeconfig: str

    def run(self, *args: str, stdin: str | None = None, within: float = 60) -> str:
        """Run one command; raise with its error text when it fails."""
        done = subprocess.run(
            [self.binary, "--kubeconfig", self.kubeconfig, *args],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=within,
            check=False,
        )
        if done.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(args)}: {done.stderr.strip()}")
        return done.stdout

    def succeeds(self, *args: str) -> bool:
        """Whether the command exits with 0."""
        try:
            self.run(*args)
        except AssertionError:
            return False
        return True

    def apply(self, manifests: str) -> None:
        """Create or update the objects of a YAML text."""
        self.run("apply", "--filename", "-", stdin=manifests)

    def get(self, *args: str) -> Any:
        """One object, or the items of a list; None when it does not exist."""
        text = self.run("get", *args, "--output", "json", "--ignore-not-found")
        answer = json.loads(text) if text.strip() else None
        return answer["items"] if answer and answer["kind"] == "List" else answer

    def exec(self, namespace: str, pod: str, container: str, *command: str, within: float = 60) -> str:
        """Output of a command run in a container."""
        return self.run(
            "exec", "--namespace", namespace, pod, "--container", container, "--", *command, within=within
        )

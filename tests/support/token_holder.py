"""A holder of a token, who speaks with the REST service all the time and notes when it is refused."""

import base64
import contextlib
import itertools
import json
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Generator
from typing import NamedTuple

from tests.support.kubectl import Kubectl
from tests.support.slurm_cluster import SlurmCluster

PACE_S = 0.05
"""Pause between two requests."""


class Answer(NamedTuple):
    """One request: when it was answered (monotonic), whether well, and its token."""

    at: float
    good: bool
    token: str


def rest_url(cluster: SlurmCluster) -> str:
    """Where the REST service of a cluster is."""
    service = cluster.kubectl.get("service", f"{cluster.name}-restapi", "--namespace", cluster.name)
    return f"http://{service['spec']['clusterIP']}:6820"


def answers(url: str, token: str, path: str = "slurm/v0.0.44/nodes/") -> bool:
    """Whether a request with the token gets what it asks for."""
    request = urllib.request.Request(  # noqa: S310 -- a URL of our own
        f"{url}/{path}", headers={"X-SLURM-USER-TOKEN": token}
    )
    try:
        with urllib.request.urlopen(request, timeout=5) as reply:  # noqa: S310 -- the same
            return not json.loads(reply.read())["errors"]
    except OSError:
        return False


class Holder:
    """Asks with whatever `token` gives at that moment, until it is stopped."""

    def __init__(self, url: str, token: Callable[[], str]) -> None:
        self.answers: list[Answer] = []
        self._url = url
        self._token = token
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def since(self, moment: float) -> list[Answer]:
        """The answers after a moment."""
        return [answer for answer in self.answers if answer.at > moment]

    def refused_s(self, since: float) -> float:
        """The longest time from one good answer to the next, which includes the request itself."""
        good = [since, *(answer.at for answer in self.since(since) if answer.good)]
        return max(later - earlier for earlier, later in itertools.pairwise(good))

    @contextlib.contextmanager
    def asking(self) -> Generator["Holder"]:
        """Within this the requests flow."""
        self._thread.start()
        try:
            yield self
        finally:
            self._ended.set()
            self._thread.join(timeout=30)

    def _run(self) -> None:
        while not self._ended.wait(PACE_S):
            token = self._token()
            good = answers(self._url, token)
            self.answers.append(Answer(time.monotonic(), good, token))


class Stored:
    """What the Secret of a Token holds, as a watch tells it: within milliseconds of the change."""

    def __init__(self, kubectl: Kubectl, namespace: str, secret: str) -> None:
        self.text = ""
        self._process = subprocess.Popen(
            [
                *(kubectl.binary, "--kubeconfig", kubectl.kubeconfig, "get", "secret", "--watch"),
                *("--namespace", namespace, "--field-selector", f"metadata.name={secret}"),
                *("--output", "jsonpath={.data.SLURM_JWT}{'\\n'}"),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        self._thread = threading.Thread(target=self._follow)

    @contextlib.contextmanager
    def followed(self) -> Generator["Stored"]:
        """Within this `text` is what the Secret holds."""
        self._thread.start()
        try:
            yield self
        finally:
            self._process.kill()
            self._process.wait(timeout=10)
            self._thread.join(timeout=10)

    def _follow(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            if line.strip():
                self.text = base64.b64decode(line).decode()
        self._process.stdout.close()

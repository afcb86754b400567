"""A real kube-apiserver for the tests of a session, started when the first of them asks for it.

The tests in tests/apiserver share it by the argument `api_server`, so each works in a namespace of its own
(`namespace`).
"""

import json
import subprocess
import uuid
from collections.abc import Iterator

import pytest

from lab import binaries
from lab.apiserver import ApiServer


@pytest.fixture(scope="session")
def api_server() -> Iterator[ApiServer]:
    """Etcd and kube-apiserver on loopback, without controllers; skipped where the binaries are not built."""
    if not all(binaries.COMPONENTS[name].built for name in ("etcd", "kubernetes")):
        pytest.skip("the Kubernetes binaries are not built: run `make lab-build`")
    with ApiServer() as server:
        yield server


@pytest.fixture
def namespace(api_server: ApiServer) -> str:
    """Return the name of a new namespace; it goes with the server."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    kubectl(api_server, "create", "namespace", name)
    return name


def kubectl(server: ApiServer, *arguments: str, stdin: str | None = None) -> str:
    """Run kubectl as administrator and return what it printed."""
    command = [str(binaries.binary("kubectl")), f"--kubeconfig={server.kubeconfig}", *arguments]
    try:
        return subprocess.run(command, input=stdin, capture_output=True, text=True, check=True).stdout
    except subprocess.CalledProcessError as error:
        error.add_note(error.stderr)
        raise


def writes(server: ApiServer, user: str | None = None) -> list[str]:
    """Return `verb path` of each write request that the server took so far, of one user where given."""
    events = [json.loads(line) for line in server.audit_log.read_text().splitlines()]
    return [
        f"{event['verb']} {event['requestURI']}"
        for event in events
        if user is None or event["user"]["username"] == user
    ]

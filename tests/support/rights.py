"""Service accounts as a chart makes them: working as one, and what one may do.

may(server, account, ["create pods/exec a", "get nodes *"])     # verb, resource, namespace; * is all of them
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lab.apiserver import ApiServer
from tests.support.apiserver import kubectl


@dataclass(frozen=True)
class Account:
    """A service account."""

    namespace: str
    name: str

    @property
    def user(self) -> str:
        """The user that its tokens stand for."""
        return f"system:serviceaccount:{self.namespace}:{self.name}"

    @property
    def groups(self) -> list[str]:
        """The groups that its tokens stand for."""
        every = "system:serviceaccounts"
        return [every, f"{every}:{self.namespace}", "system:authenticated"]

    def token(self, server: ApiServer) -> str:
        """A token of the account."""
        return kubectl(server, "-n", self.namespace, "create", "token", self.name).strip()

    def write_kubeconfig(self, server: ApiServer, path: Path) -> Path:
        """Write a kubeconfig that works as the account."""
        config = yaml.safe_load(server.kubeconfig.read_text())
        config["users"][0]["user"] = {"token": self.token(server)}
        path.write_text(yaml.safe_dump(config))
        return path


def may(server: ApiServer, account: Account, requests: Iterable[str]) -> set[str]:
    """Those of the requests that the API server's authorizer allows."""
    asked = list(requests)
    body = json.dumps(
        {"apiVersion": "v1", "kind": "List", "items": [_review(account, each) for each in asked]}
    )
    answered = documents(kubectl(server, "create", "-f", "-", "-o", "json", stdin=body))
    allowed = [each["status"].get("allowed", False) for each in answered]
    return {request for request, yes in zip(asked, allowed, strict=True) if yes}


def documents(text: str) -> list[dict[str, Any]]:
    """The JSON documents that kubectl prints one after the other."""
    decoder, found = json.JSONDecoder(), list[dict[str, Any]]()
    while text := text.strip():
        document, end = decoder.raw_decode(text)
        found += document["items"] if document["kind"] == "List" else [document]
        text = text[end:]
    return found


def _review(account: Account, request: str) -> dict[str, Any]:
    verb, what, where = request.split()
    spec: dict[str, Any] = {"user": account.user, "groups": account.groups}
    if what.startswith("/"):
        spec["nonResourceAttributes"] = {"path": what, "verb": verb}
    else:
        name, _, subresource = what.partition("/")
        resource, _, group = name.partition(".")
        spec["resourceAttributes"] = {
            "verb": verb,
            "group": group,
            "resource": resource,
            "subresource": subresource,
            "namespace": "" if where == "*" else where,
        }
    return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}

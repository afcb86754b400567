"""A stand-in for prometheus-adapter: the API of external metrics, answered by one rule from a Prometheus.

It reads the rule as the adapter does, so a test holds the example of the documentation, not a copy of it.
"""

import json
import ssl
import threading
import urllib.parse
import urllib.request
from base64 import b64encode
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml

from lab import topology
from lab.certificates import Subject
from tests.support.kubectl import Kubectl

GROUP, VERSION = "external.metrics.k8s.io", "v1beta1"
BASE = f"/apis/{GROUP}/{VERSION}"
NAME = "external-metrics-stand-in"


@dataclass(frozen=True)
class Rule:
    """An entry of `rules.external`."""

    series: str
    name: str
    query: str

    @classmethod
    def read(cls, values: Path) -> "Rule":
        """The only external rule of a values file of prometheus-adapter."""
        (rule,) = yaml.safe_load(values.read_text())["rules"]["external"]
        return cls(rule["seriesQuery"], rule["name"]["as"], rule["metricsQuery"])

    def expression(self, namespace: str, labels: Mapping[str, str]) -> str:
        """The query with the series and the matchers in it."""
        matchers = ",".join(f'{key}="{value}"' for key, value in {"namespace": namespace, **labels}.items())
        return self.query.replace("<<.Series>>", self.series).replace("<<.LabelMatchers>>", matchers)


@contextmanager
def served(kubectl: Kubectl, rule: Rule, prometheus: str, folder: Path) -> Generator[None]:
    """Serve the metric of a rule in the lab while the block runs; `prometheus` is the URL of its API."""
    authority = topology.control_plane(topology.recorded_nodes()[0]).authority()
    host = f"{NAME}.kube-system.svc"
    authority.issue(Subject(NAME, hosts=[host])).write(folder, "server")
    server = ThreadingHTTPServer((topology.HOST_ADDRESS, 0), _handler(rule, prometheus))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    objects = _registration(server.server_port, b64encode(authority.credentials.certificate).decode())
    try:
        kubectl.apply(objects)
        kubectl.run("wait", "--for=condition=Available", f"apiservice/{VERSION}.{GROUP}", "--timeout=30s")
        yield
    finally:
        # An API that is registered but gone would hold up the deletion of every namespace.
        kubectl.run("delete", "--filename", "-", "--ignore-not-found", stdin=objects)
        server.shutdown()
        server.server_close()


def _registration(port: int, authority: str) -> str:
    place = {"name": NAME, "namespace": "kube-system"}
    ports = [{"name": "https", "port": port}]
    return yaml.safe_dump_all(
        [
            {"apiVersion": "v1", "kind": "Service", "metadata": place, "spec": {"ports": ports}},
            {
                "apiVersion": "discovery.k8s.io/v1",
                "kind": "EndpointSlice",
                "metadata": {**place, "labels": {"kubernetes.io/service-name": NAME}},
                "addressType": "IPv4",
                "ports": ports,
                "endpoints": [{"addresses": [topology.HOST_ADDRESS]}],
            },
            {
                "apiVersion": "apiregistration.k8s.io/v1",
                "kind": "APIService",
                "metadata": {"name": f"{VERSION}.{GROUP}"},
                "spec": {
                    "group": GROUP,
                    "version": VERSION,
                    "service": {**place, "port": port},
                    "caBundle": authority,
                    "groupPriorityMinimum": 100,
                    "versionPriority": 100,
                },
            },
        ]
    )


def _handler(rule: Rule, prometheus: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            if path == BASE:
                self._answer(_resources(rule))
            elif path.startswith(f"{BASE}/namespaces/") and path.endswith(f"/{rule.name}"):
                self._answer(_values(rule, prometheus, path.split("/")[-2], urllib.parse.parse_qs(query)))
            else:
                self.send_error(404)

        def _answer(self, content: dict[str, Any]) -> None:
            body = json.dumps(content).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- as the base class names it
            """Say nothing: the API server asks all the time."""

    return Handler


def _resources(rule: Rule) -> dict[str, Any]:
    resource = {"name": rule.name, "singularName": "", "namespaced": True, "kind": "ExternalMetricValueList"}
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{GROUP}/{VERSION}",
        "resources": [{**resource, "verbs": ["get"]}],
    }


def _values(rule: Rule, prometheus: str, namespace: str, query: Mapping[str, list[str]]) -> dict[str, Any]:
    pairs = [part.split("=") for part in query.get("labelSelector", [""])[0].split(",") if part]
    expression = rule.expression(namespace, dict(pairs))
    url = f"{prometheus}/api/v1/query?{urllib.parse.urlencode({'query': expression})}"
    with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 -- of the lab
        found = json.load(answer)["data"]["result"]
    stamp = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    items = [
        {"metricName": rule.name, "metricLabels": {}, "timestamp": stamp, "value": sample["value"][1]}
        for sample in found
    ]
    return {
        "kind": "ExternalMetricValueList",
        "apiVersion": f"{GROUP}/{VERSION}",
        "metadata": {},
        "items": items,
    }

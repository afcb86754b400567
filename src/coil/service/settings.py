"""Settings of the processes: their flags and defaults (spec: control-plane 15.1)."""

from typing import Annotated, Literal, NamedTuple

import msgspec
from msgspec import Meta

from coil.service.flags import CHECK

Workers = Annotated[int, Meta(ge=1, description="passes that may run at once")]


class Address(NamedTuple):
    """Where a server listens; `host` None is every address of the machine, of both families."""

    host: str | None
    port: int


MAX_PORT = 65535


def address(text: str) -> Address | None:
    """Read `:8080`, `localhost:6060` or `[::1]:0`; `0` and the empty text mean no server.

    Raises:
        ValueError: not host:port with a port of 0 to 65535.
    """
    if text in ("", "0"):
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > MAX_PORT:
        raise ValueError(f"{text!r} is not an address: write host:port or :port, or 0 for none")
    return Address(host.removeprefix("[").removesuffix("]") or None, int(port))


def _listen(what: str) -> Meta:
    return Meta(description=f"listen address of {what}", extra={CHECK: address})


class ProcessSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What every process can be told on its command line; one member is one flag."""

    health_addr: Annotated[str, _listen("/healthz and /readyz, 0 for none")] = ":8081"
    metrics_addr: Annotated[str, _listen("/metrics, 0 for none")] = "0"
    metrics_secure: Annotated[bool, Meta(description="HTTPS, and only for those allowed to get /metrics")] = (
        False
    )
    enable_http2: Annotated[bool, Meta(description="accepted; HTTP/1.1 is always what is offered")] = False
    leader_elect: Annotated[bool, Meta(description="reconcile only while holding the Lease")] = False
    leader_elect_namespace: Annotated[str, Meta(description="where the Lease lives; else the pod's own")] = ""
    namespaces: Annotated[tuple[str, ...], Meta(description="comma list of namespaces; none means all")] = ()
    zap_log_level: Annotated[str, Meta(description="debug, info, error, panic or a number above 0")] = ""
    zap_encoder: Annotated[Literal["", "json", "console"], Meta(description="json or console")] = ""
    zap_devel: Annotated[bool, Meta(description="console output from debug on")] = False
    zap_stacktrace_level: Annotated[
        Literal["", "info", "error", "panic"], Meta(description="from which level stack traces are logged")
    ] = ""
    zap_time_encoding: Annotated[
        Literal["", "epoch", "millis", "nano", "iso8601", "rfc3339", "rfc3339nano"],
        Meta(description="how times are written in the log"),
    ] = ""
    kubeconfig: Annotated[str, Meta(description="out-of-cluster use; else KUBECONFIG, the pod, ~/.kube")] = ""


class Settings(ProcessSettings, frozen=True, kw_only=True):
    """What the manager can be told."""

    metrics_addr: Annotated[str, _listen("/metrics, 0 for none")] = ":8080"
    accounting_workers: Workers = 1
    controller_workers: Workers = 1
    loginset_workers: Workers = 1
    nodeset_workers: Workers = 1
    restapi_workers: Workers = 1
    slurmclient_workers: Workers = 1
    token_workers: Workers = 1
    propagated_node_conditions: Annotated[
        tuple[str, ...], Meta(description="node conditions that become drain reasons, comma list")
    ] = ()
    profile: Annotated[bool, Meta(description="serve profiles of the running process")] = False
    profile_addr: Annotated[str, _listen("the profiles")] = "localhost:6060"


CERTIFICATES = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108 -- where charts mount the certificate


class WebhookSettings(ProcessSettings, frozen=True, kw_only=True):
    """What the webhook can be told."""

    leader_elect: Annotated[bool, Meta(description="hold the Lease; every replica answers anyway")] = False
    server_addr: Annotated[str, _listen("the webhooks")] = ":9443"
    cert_dir: Annotated[str, Meta(description="folder of tls.crt and tls.key, read again on change")] = (
        CERTIFICATES
    )
    renew_certificate: Annotated[
        str, Meta(description="Secret whose certificate is renewed before it ends; else others renew it")
    ] = ""
    registration: Annotated[
        str, Meta(description="name of the webhook configurations that are to trust a renewed certificate")
    ] = "slurm-operator-webhook"

"""Names of derived objects and their DNS names (spec: control-plane 2.5 and 2.6, nodeset 4)."""

import re

from coil.api import keys
from coil.api.token import DEFAULT_SECRET_KEY, Token

DEFAULT_DOMAIN = "cluster.local"
_ORDINAL = re.compile(r"(.*)-([0-9]+)\Z", re.DOTALL)
_INT32_MAX = 2**31 - 1


def controller(name: str) -> str:
    """StatefulSet, Service and ServiceMonitor of a Controller."""
    return f"{name}-controller"


def controller_internal(name: str) -> str:
    """Headless Service of a Controller."""
    return f"{name}-controller-internal"


def controller_config(name: str) -> str:
    """ConfigMap of a Controller."""
    return f"{name}-config"


def controller_candidate(name: str) -> str:
    """ConfigMap with a configuration of a Controller that has not been accepted yet."""
    return f"{name}-config-candidate"


def rehearsal_pod(name: str, generation: str) -> str:
    """Pod in which one configuration of a Controller is tried."""
    return f"{name}-rehearsal-{generation}"


def controller_pod(name: str, ordinal: int) -> str:
    """Pod of a Controller."""
    return f"{controller(name)}-{ordinal}"


def accounting(name: str) -> str:
    """StatefulSet, Service and Secret of an Accounting."""
    return f"{name}-accounting"


def restapi(name: str) -> str:
    """Deployment and Service of a RestApi."""
    return f"{name}-restapi"


def loginset(name: str) -> str:
    """Deployment and Service of a LoginSet."""
    return name


def ssh_config(name: str) -> str:
    """ConfigMap with the sshd_config of a LoginSet or NodeSet."""
    return f"{name}-ssh-config"


def ssh_host_keys(name: str) -> str:
    """Secret with the host keys of a LoginSet."""
    return f"{name}-ssh-host-keys"


def token_secret(token: Token) -> tuple[str, str]:
    """Secret and key that hold the token."""
    default = f"{token.metadata.name}-jwt-{token.spec.username}"
    ref = token.spec.secret_ref
    return (ref.name or default, ref.key or DEFAULT_SECRET_KEY) if ref else (default, DEFAULT_SECRET_KEY)


def worker_service(controller_name: str) -> str:
    """Headless Service shared by all workers of a cluster."""
    return f"slurm-workers-{controller_name}"


def worker_budget(controller_name: str) -> str:
    """PodDisruptionBudget shared by all workers of a cluster."""
    return f"slurm-workers-pdb-{controller_name}"


def revision(nodeset: str, digest: str) -> str:
    """ControllerRevision of a NodeSet."""
    return f"{nodeset[:223]}-{digest}"


def reservation(nodeset: str) -> str:
    """Slurm reservation of a NodeSet's scheduled update."""
    return f"SlurmOperatorMaint-{nodeset}"


def padded(ordinal: int, digits: int) -> str:
    """Ordinal filled with zeros to `digits`; wider ordinals are kept."""
    return str(ordinal).zfill(digits)


def worker_pod(nodeset: str, ordinal: int, digits: int) -> str:
    """Pod of a NodeSet in scaling mode StatefulSet."""
    return f"{nodeset}-{padded(ordinal, digits)}"


def split_ordinal(pod: str) -> tuple[str, int]:
    """NodeSet and ordinal of a pod's name; an ordinal of -1 when it has none within 32 bits."""
    match = _ORDINAL.match(pod)
    if match is None:
        return "", -1
    ordinal = int(match[2])
    return match[1], ordinal if ordinal <= _INT32_MAX else -1


def claim(template: str, owner: str) -> str:
    """PersistentVolumeClaim made from a claim template for a pod (or its host name)."""
    return f"{template}-{owner}"


def short_dns(service: str, namespace: str) -> str:
    """Name of a Service for use inside the cluster."""
    return f"{service}.{namespace}"


def full_dns(service: str, namespace: str, domain: str) -> str:
    """Fully qualified name of a Service."""
    return f"{service}.{namespace}.svc.{domain}"


def cluster_domain(resolv_conf: str) -> str:
    """DNS domain of the cluster, from the text of a pod's resolv.conf.

    The first word that begins with `svc.` on a `search` line gives it; without one it is cluster.local.
    """
    for line in resolv_conf.splitlines():
        if line.startswith("search"):
            for word in line.split()[1:]:
                if word.startswith("svc."):
                    return word.removeprefix("svc.") or DEFAULT_DOMAIN
    return DEFAULT_DOMAIN


def operator_labels(application: str, instance: str, component: str) -> dict[str, str]:
    """The labels that users cannot displace (spec: control-plane 2.3)."""
    return {**selector_labels(application, instance), keys.LABEL_COMPONENT: component}


def selector_labels(application: str, instance: str) -> dict[str, str]:
    """The immutable selector of a workload."""
    return {keys.LABEL_INSTANCE: instance, keys.LABEL_NAME: application}


def selector_text(application: str, instance: str) -> str:
    """The selector as text, as the scale subresource has it."""
    return ",".join(f"{key}={value}" for key, value in sorted(selector_labels(application, instance).items()))

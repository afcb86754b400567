"""What a pass over a LoginSet does, and why (spec: control-plane 8). Pure.

    needs_host_keys(snapshot)   # then generate them and put them into the snapshot
    steps(snapshot)
    conditions(snapshot, problems)

Pods are not made or replaced for what they could not start with: while a key or sssd.conf is missing the
running ones stay as they are. What is missing is watched, so the pass comes back when it appears.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from coil.api import names
from coil.api.controller import Controller
from coil.api.loginset import LoginSet
from coil.api.meta import Condition, JsonObject
from coil.build import loginset as build
from coil.build.errors import BuildError
from coil.build.hashes import map_hash
from coil.kinds.loginset.strength import WEAK_BELOW_BITS, rsa_bits
from coil.kinds.references import missing_controller, missing_key
from coil.kinds.status import AVAILABLE, Problem, condition, reconciled
from coil.kinds.steps import Apply, Failed, Step
from coil.kube.views import ManifestView, SecretView

HOST_KEYS = "SSH Host Keys"
SSH_CONFIG = "SSH Config"
SERVICE = "Service"
DEPLOYMENT = "Deployment"

HOST_KEYS_STRONG = "HostKeysStrong"
"""Condition: clients of today accept the host keys (field case LGN-02)."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What a pass goes by, as far as it concerns this LoginSet.

    Attributes:
        loginset: with the operator's defaults filled in.
        cluster_domain: DNS domain of the cluster.
        controller: the one referred to, if it exists.
        slurm_key: the Secret that the Controller names, if it exists.
        sssd: the Secret that the LoginSet names, if it exists.
        host_keys: the live Secret with the host keys.
        new_host_keys: those to make because there is no such Secret.
        ssh_config: the live child.
        service: the live child.
        deployment: the live child.
    """

    loginset: LoginSet
    cluster_domain: str = names.DEFAULT_DOMAIN
    controller: Controller | None = None
    slurm_key: SecretView | None = None
    sssd: SecretView | None = None
    host_keys: SecretView | None = None
    new_host_keys: Mapping[str, str] | None = None
    ssh_config: ManifestView | None = None
    service: ManifestView | None = None
    deployment: ManifestView | None = None


def needs_host_keys(snapshot: Snapshot) -> bool:
    """Whether host keys have to be made, as far as the snapshot knows."""
    return snapshot.controller is not None and snapshot.host_keys is None


def steps(snapshot: Snapshot) -> tuple[Step, ...]:
    """All steps in order; none but a failure without the Controller (spec: control-plane 8.2)."""
    if snapshot.controller is None:
        missing = missing_controller(snapshot.loginset.spec.controller_ref.name)
        return (Failed(name="Controller", reason=missing.reason, message=missing.message),)
    return tuple(_steps(snapshot, snapshot.controller))


def conditions(snapshot: Snapshot, problems: Sequence[Problem]) -> list[Condition]:
    """Whether the objects are as wanted, people can log in, and their clients accept the host keys."""
    told = [reconciled(snapshot.loginset, problems), _available(snapshot)]
    return told if snapshot.host_keys is None else [*told, _strong(snapshot.loginset, snapshot.host_keys)]


def status(snapshot: Snapshot) -> JsonObject:
    """The members that the scale subresource and people read."""
    live = {} if snapshot.deployment is None else snapshot.deployment.status
    name = snapshot.loginset.metadata.name
    return {"replicas": live.get("replicas", 0), "selector": names.selector_text("login", name)}


def _steps(snapshot: Snapshot, controller: Controller) -> Iterator[Step]:
    loginset = snapshot.loginset
    if (host_keys := _host_keys(snapshot)) is not None:
        yield host_keys
    yield Apply(name=SSH_CONFIG, wanted=build.ssh_config(loginset), live=snapshot.ssh_config)
    try:
        yield Apply(name=SERVICE, wanted=build.service(loginset), live=snapshot.service)
    except BuildError as error:
        yield Failed(name=SERVICE, reason="Invalid", message=str(error))
    yield _deployment(snapshot, controller)


def _host_keys(snapshot: Snapshot) -> Step | None:
    """Make the Secret, once; one that is there is never written to, whatever it holds (invariant I10)."""
    if snapshot.new_host_keys is not None:
        wanted = build.host_keys(snapshot.loginset, snapshot.new_host_keys)
        return Apply(name=HOST_KEYS, wanted=wanted, live=None)
    found = {} if snapshot.host_keys is None else snapshot.host_keys.data
    missing = [file for file in build.HOST_KEYS if not found.get(file)]
    if not missing:
        return None
    name = names.ssh_host_keys(snapshot.loginset.metadata.name)
    message = f'Secret "{name}" has no {", ".join(missing)}; add them, or delete it to get new host keys'
    return Failed(name=HOST_KEYS, reason="HostKeyMissing", message=message)


def _deployment(snapshot: Snapshot, controller: Controller) -> Step:
    problem = _missing(snapshot, controller)
    if problem is not None:
        return problem
    loginset = snapshot.loginset
    sssd = {} if snapshot.sssd is None else snapshot.sssd.data
    host_keys = snapshot.new_host_keys or (snapshot.host_keys.data if snapshot.host_keys else None)
    inputs = build.PodInputs(
        controller=controller,
        cluster_domain=snapshot.cluster_domain,
        host_keys_hash=map_hash(host_keys),
        sssd_conf=sssd.get(loginset.spec.sssd_conf_ref.key),
    )
    try:
        wanted = build.deployment(loginset, inputs)
    except BuildError as error:
        return Failed(name=DEPLOYMENT, reason="Invalid", message=str(error))
    return Apply(name=DEPLOYMENT, wanted=wanted, live=snapshot.deployment, needs=HOST_KEYS)


def _missing(snapshot: Snapshot, controller: Controller) -> Failed | None:
    """What the pods would wait for in vain; a Controller without slurmKeyRef is told by the build."""
    wanted = [(snapshot.loginset.spec.sssd_conf_ref, snapshot.sssd, "spec.sssdConfRef")]
    if controller.spec.slurm_key_ref is not None:
        where = f"spec.slurmKeyRef of Controller {controller.metadata.name}"
        wanted.insert(0, (controller.spec.slurm_key_ref, snapshot.slurm_key, where))
    asked = (missing_key(ref, secret and secret.data, where) for ref, secret, where in wanted)
    told = [missing for missing in asked if missing is not None]
    if not told:
        return None
    message = "; ".join(missing.message for missing in told)
    return Failed(name=DEPLOYMENT, reason=told[0].reason, message=message)


def _available(snapshot: Snapshot) -> Condition:
    loginset, deployment = snapshot.loginset, snapshot.deployment
    if deployment is None:
        return condition(loginset, AVAILABLE, "False", "NoDeployment", "there are no login pods yet")
    if deployment.status.get("availableReplicas"):
        return condition(loginset, AVAILABLE, "True", "Available", "people can log in")
    if not loginset.spec.replicas:
        return condition(loginset, AVAILABLE, "False", "NoReplicas", "spec.replicas is 0")
    return condition(loginset, AVAILABLE, "False", "NotReady", "no login pod is ready")


def _strong(loginset: LoginSet, host_keys: SecretView) -> Condition:
    bits = rsa_bits(host_keys.data)
    if bits is None or bits >= WEAK_BELOW_BITS:
        return condition(loginset, HOST_KEYS_STRONG, "True", "Strong", "clients accept the host keys")
    message = (
        f"ssh_host_rsa_key has {bits} bits, and many clients refuse it. It stays, because clients remember "
        f"it; to get new host keys delete Secret {host_keys.metadata.name}"
    )
    return condition(loginset, HOST_KEYS_STRONG, "False", "WeakKey", message)

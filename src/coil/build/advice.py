"""What a user should know about an object that can be built, but hardly does what was meant.

    for text in controller_advice(controller, inputs): ...   # each says where, what, and what to do
    for text in nodeset_advice(nodeset): ...

Nothing here stops anything: admission returns these texts as warnings, a reconciler as an event.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from coil.api import keys
from coil.api.controller import Controller
from coil.api.nodeset import NodeSet
from coil.build.nodeconf import extra_conf_problem
from coil.build.slurmconf import ConfigInputs, members, nodeset_problem, partition_problem
from coil.build.typed import EXPLICIT_ZERO
from coil.support.conftext import parse_options
from coil.support.objects import JsonObject

_TOPOLOGY_FILES = ("topology.conf", "topology.yaml")
_LONG_NUMBER = re.compile(r"[\w.-]*[0-9]{20,}\b")
_GRES_NAME = re.compile(r"^(?!\s*#).*?\bName=(\w+)", re.IGNORECASE | re.MULTILINE)
_INEFFECTIVE = EXPLICIT_ZERO - {
    "apiGroup",
    "automountServiceAccountToken",
    "hostProcess",
    "optional",
    "partition",
    "priority",
    "readOnlyRootFilesystem",
    "service",
    "setHostnameAsFQDN",
    "shareProcessNamespace",
}
"""Members where a zero value would change something; the others are zero when nothing is said."""
_OWN_PATHS = {
    keys.SLURMCTLD: {keys.DIR_CONFIG, keys.DIR_RUN, keys.DIR_AUTH_SOCKET, keys.DIR_LOG},
    keys.SLURMD: {keys.DIR_CONFIG, keys.DIR_LOG},
}


def controller_advice(controller: Controller, inputs: ConfigInputs) -> list[str]:
    """Advice on a Controller, its configuration files and the NodeSets that it renders."""
    spec = controller.spec
    files: dict[str, str] = {}
    for ref in spec.config_file_refs:
        files |= inputs.config_maps.get(ref.name, {})
    nodesets = members(controller, inputs.nodesets)
    return [
        *ineffective(spec.slurmctld, "spec.slurmctld"),
        *ineffective(spec.template.spec, "spec.template.spec"),
        *_clashes(spec.slurmctld, keys.SLURMCTLD),
        *external_addresses(spec.service.spec),
        *_topology(files, spec.extra_conf),
        *_private(controller),
        *_devices(files.get("gres.conf", ""), nodesets),
        *_left_out(controller, nodesets),
    ]


def nodeset_advice(nodeset: NodeSet) -> list[str]:
    """Advice on a NodeSet by itself."""
    spec = nodeset.spec
    advice = [
        *ineffective(spec.slurmd, "spec.slurmd"),
        *ineffective(spec.template.spec, "spec.template.spec"),
        *_clashes(spec.slurmd, keys.SLURMD),
        *(text for text in (nodeset_problem(nodeset), extra_conf_problem(nodeset)) if text),
    ]
    if spec.template.spec.get("hostNetwork"):
        advice.append(
            "spec.template.spec.hostNetwork: slurmd registers under the name of the Kubernetes node; "
            "host name prefixes and overrides have no effect"
        )
    return advice


def _left_out(controller: Controller, nodesets: list[NodeSet]) -> Iterator[str]:
    for nodeset in nodesets:
        problem = nodeset_problem(nodeset) or partition_problem(controller, nodeset, nodesets)
        if problem:
            yield f"NodeSet {nodeset.metadata.name}: {problem}"


def ineffective(override: JsonObject, where: str) -> Iterator[str]:
    """Zero values that were meant to override something, see `coil.build.merge.prune`."""
    for name, value in override.items():
        path = f"{where}.{name}"
        if isinstance(value, dict):
            yield from ineffective(value, path)
        elif name in _INEFFECTIVE and value in (0, ""):
            yield f"{path}: {_json(value)} has no effect, a zero value overrides nothing"


def _json(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _clashes(override: JsonObject, container: str) -> Iterator[str]:
    for item in override.get("volumeMounts") or ():
        if item.get("mountPath") in _OWN_PATHS[container]:
            yield (
                f"spec.{container}.volumeMounts: {item['mountPath']} is mounted by the operator; "
                f"volume {item.get('name')} takes the place of what {container} needs there"
            )


def external_addresses(service: JsonObject) -> Iterator[str]:
    """Addresses that a Service would take over (field case INJ-04)."""
    if service.get("externalIPs"):
        yield "spec.service.spec.externalIPs: is ignored, it could capture traffic to any address"


def _topology(files: dict[str, str], extra_conf: str) -> Iterator[str]:
    present = [name for name in _TOPOLOGY_FILES if name in files]
    if present == ["topology.conf"] and "topologyplugin" not in parse_options(extra_conf):
        yield (
            "spec.configFileRefs: topology.conf has no effect without TopologyPlugin; "
            "add TopologyPlugin=topology/tree to spec.extraConf"
        )
    for name in present:
        for word in _LONG_NUMBER.findall(files[name]):
            yield (
                f"spec.configFileRefs: {name} names {word[:60]}; Slurm misreads numbers of 20 and more "
                "digits at the end of a name, and slurmctld may end; shorten it where it is declared and used"
            )


def _private(controller: Controller) -> Iterator[str]:
    """A cluster that hides things from its users serves no metrics (field case MON-03)."""
    private = parse_options(controller.spec.extra_conf).get("privatedata", "none")
    if controller.spec.metrics.enabled and private.lower() != "none":
        yield (
            f"spec.metrics.enabled: slurmctld serves no metrics while spec.extraConf has "
            f"PrivateData={private}; take one of them away"
        )


def _devices(gres_conf: str, nodesets: Iterable[NodeSet]) -> Iterator[str]:
    declared = sorted({name.lower() for name in _GRES_NAME.findall(gres_conf)})
    for nodeset in nodesets:
        words = [word.partition("=") for word in nodeset.spec.extra_conf.split()]
        gres = [value.lower() for key, _, value in words if key.lower() == "gres"]
        known = {item.partition(":")[0] for value in gres for item in value.split(",")}
        missing = [name for name in declared if name not in known]
        if missing and not known:
            yield (
                f"NodeSet {nodeset.metadata.name}: gres.conf declares {', '.join(missing)}, but its nodes "
                f"have no such device until spec.extraConf says so, for example Gres={missing[0]}:1"
            )

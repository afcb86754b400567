"""The text of slurm.conf and cgroup.conf (spec: control-plane 5.2).

A NodeSet whose name or partition would spill over its own line is left out, so that it harms nobody
else (invariants I7 and I9); `nodeset_problem` says why. In the Controller's own members the same is an
error. Two lines for one partition would keep slurmctld from starting; `partition_problem` says which is
left out.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from coil.api import keys, names
from coil.api.accounting import Accounting
from coil.api.controller import Controller
from coil.api.meta import LocalObjectReference
from coil.api.nodeset import NodeSet
from coil.build.errors import BuildError
from coil.support.conftext import (
    ConfTextError,
    Section,
    merged_section,
    parse_options,
    property_line,
    render,
    single_line,
    single_word,
)

CGROUP_CONF = "cgroup.conf"
_CGROUP_DEFAULT = "CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n"
_MAX_NODES = 1024
_TAKEOVER_S = 15
"""SlurmctldTimeout with backups: Slurm's own 120 s would be how long a dead slurmctld is missed."""
AUTH_INFO = "use_client_ids"
_CTLD_OPTIONS = ("enable_configless", "reconfig_on_restart")
_NODESET_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_PARTITION = re.compile(r"^[ \t]*PartitionName[ \t]*=[ \t]*([^\s#]+)", re.IGNORECASE | re.MULTILINE)

Files = Mapping[str, str]


class ConfigInputs(msgspec.Struct, frozen=True, kw_only=True):
    """What slurm.conf depends on besides the Controller.

    Attributes:
        nodesets: The NodeSets of the namespace; those of other Controllers are ignored.
        accounting: The object named by `accountingRef`, if it exists.
        config_maps: `data` of the ConfigMaps that the Controller refers to, by name.
    """

    nodesets: Sequence[NodeSet] = ()
    accounting: Accounting | None = None
    config_maps: Mapping[str, Files] = msgspec.field(default_factory=dict)


def config_files(controller: Controller, inputs: ConfigInputs) -> dict[str, str]:
    """The generated configuration files, by name.

    Raises:
        BuildError: a referenced ConfigMap is missing, or a member would break the file.
    """
    try:
        if controller.spec.external:
            return {keys.FILE_SLURM_CONF: render(_external_sections(controller, inputs))}
        own_files = dict(_files(controller.spec.config_file_refs, "configFileRefs", inputs))
        text = render(_sections(controller, inputs, own_files.get(CGROUP_CONF, "")))
    except ConfTextError as error:
        raise BuildError("spec", str(error)) from None
    generated = {} if CGROUP_CONF in own_files else {CGROUP_CONF: _CGROUP_DEFAULT}
    return {**generated, keys.FILE_SLURM_CONF: text}


def members(controller: Controller, nodesets: Iterable[NodeSet]) -> list[NodeSet]:
    """The NodeSets of this cluster, in the order of their names."""
    own = [nodeset for nodeset in nodesets if nodeset.controller_key == controller.metadata.key]
    return sorted(own, key=lambda nodeset: nodeset.metadata.name)


def nodeset_problem(nodeset: NodeSet) -> str:
    """Why the NodeSet's lines are left out of slurm.conf; empty when they are not."""
    name, partition = nodeset.slurm_name, nodeset.spec.partition
    if not _NODESET_NAME.fullmatch(name):
        return f"spec.template.spec.hostname: {name[:80]!r} cannot name nodes in slurm.conf"
    if partition.enabled and name.lower() == "default":
        return f"spec.partition: {name} is no partition in Slurm, it gives defaults to others"
    try:
        single_line(partition.config, "spec.partition.config")
    except ConfTextError as error:
        return str(error)
    return ""


def partition_problem(controller: Controller, nodeset: NodeSet, nodesets: Iterable[NodeSet]) -> str:
    """Why the NodeSet has no partition line of its own although it asks for one; empty when it has.

    slurmctld does not start with two lines for one partition. The user's own line in `extraConf` comes
    first, then that of the first NodeSet by name.
    """
    name = nodeset.slurm_name
    if not nodeset.spec.partition.enabled or nodeset_problem(nodeset):
        return ""
    if name in _PARTITION.findall(controller.spec.extra_conf):
        return f"spec.partition: spec.extraConf of the Controller has a line for partition {name}"
    rivals = (other for other in members(controller, nodesets) if _has_partition(other, name))
    first = next(rivals, nodeset).metadata.name
    if first != nodeset.metadata.name:
        return f"spec.partition: partition {name} is that of NodeSet {first}, which has the same host names"
    return ""


def partitions(controller: Controller, nodesets: Iterable[NodeSet]) -> set[str]:
    """The partitions that slurm.conf names: those of NodeSets, and those of `extraConf`."""
    own = {name for name in _PARTITION.findall(controller.spec.extra_conf) if name.upper() != "DEFAULT"}
    return own | {
        nodeset.slurm_name
        for nodeset in members(controller, nodesets)
        if _has_partition(nodeset, nodeset.slurm_name)
    }


def _has_partition(nodeset: NodeSet, name: str) -> bool:
    return nodeset.spec.partition.enabled and nodeset.slurm_name == name and not nodeset_problem(nodeset)


def auth_alt_parameters(*, jwks: bool) -> list[str]:
    """The operator's options of AuthAltParameters."""
    path = f"{keys.DIR_CONFIG}/"
    return [f"jwt_key={path}{keys.FILE_JWT_KEY}", *([f"jwks={path}{keys.FILE_JWKS}"] if jwks else [])]


def _word(key: str, value: str) -> str:
    """A property with a value of one word: a blank would start another parameter on the line."""
    return property_line(key, single_word(value, key))


def _sections(controller: Controller, inputs: ConfigInputs, cgroup_conf: str) -> list[Section]:
    spec = controller.spec
    auth = auth_alt_parameters(jwks=spec.jwks_key_ref is not None)
    mandatory = {
        "AuthAltParameters": auth,
        "AuthInfo": (AUTH_INFO,),
        "SlurmctldParameters": _CTLD_OPTIONS,
    }
    return [
        _general(controller),
        _logging(),
        Section("PLUGINS & PARAMETERS", _plugins(controller, auth, cgroup_conf)),
        _accounting(inputs.accounting),
        Section("SLURMCTLD PROLOG & EPILOG", _slurmctld_scripts(controller, inputs)),
        Section("PROLOG & EPILOG", _node_scripts(controller, inputs)),
        Section("NODESET & PARTITION", _nodeset_lines(controller, inputs.nodesets)),
        Section("EXTRA CONFIG", [spec.extra_conf] if spec.extra_conf else []),
        merged_section(spec.extra_conf, mandatory),
    ]


def _general(controller: Controller) -> Section:
    name, namespace = controller.metadata.name, controller.metadata.namespace
    internal = names.controller_internal(name)
    hosts = [names.controller_pod(name, ordinal) for ordinal in range(controller.replicas)]
    return Section(
        "GENERAL",
        [
            _word("ClusterName", controller.cluster_name),
            property_line("SlurmUser", keys.SLURM_USER),
            *(property_line("SlurmctldHost", f"{host}({host}.{internal}.{namespace})") for host in hosts),
            property_line("SlurmctldPort", keys.PORT_SLURMCTLD),
            property_line("SlurmctldAddr", names.short_dns(names.controller(name), namespace)),
            property_line("StateSaveLocation", state_dir(controller)),
            property_line("SlurmdUser", keys.SLURMD_USER),
            property_line("SlurmdPort", keys.PORT_SLURMD),
            property_line("SlurmdSpoolDir", keys.DIR_SPOOL_SLURMD),
            property_line("MaxNodeCount", _MAX_NODES),
            *_takeover(controller),
        ],
    )


def _takeover(controller: Controller) -> list[str]:
    """Nothing without backups, or when the user sets it: Slurm would complain of two lines."""
    if controller.replicas == 1 or "slurmctldtimeout" in parse_options(controller.spec.extra_conf):
        return []
    return [property_line("SlurmctldTimeout", _TAKEOVER_S)]


def state_dir(controller: Controller) -> str:
    """Where slurmctld keeps its state."""
    return f"{keys.DIR_SPOOL_SLURMCTLD}/{controller.cluster_name}"


def _logging() -> Section:
    return Section(
        "LOGGING",
        [
            property_line("SlurmctldLogFile", keys.LOG_SLURMCTLD),
            property_line("SlurmSchedLogFile", keys.LOG_SLURMCTLD),
            property_line("SlurmdLogFile", keys.LOG_SLURMD),
        ],
    )


def _plugins(controller: Controller, auth: list[str], cgroup_conf: str) -> list[str]:
    lines = [
        *_auth_types(),
        property_line("AuthAltParameters", ",".join(auth)),
        property_line("AuthInfo", AUTH_INFO),
        property_line("SlurmctldParameters", ",".join(_CTLD_OPTIONS)),
    ]
    if controller.spec.metrics.enabled:
        lines.append(property_line("MetricsType", "metrics/openmetrics"))
    if _cgroups_off(cgroup_conf) and "proctracktype" not in parse_options(controller.spec.extra_conf):
        # Slurm's default, proctrack/cgroup, ends slurmd at start when cgroups are off.
        lines.append(property_line("ProctrackType", "proctrack/linuxproc"))
    return lines


def _auth_types() -> list[str]:
    return [
        property_line("AuthType", "auth/slurm"),
        property_line("CredType", "cred/slurm"),
        property_line("AuthAltTypes", "auth/jwt"),
    ]


def _cgroups_off(cgroup_conf: str) -> bool:
    return parse_options(cgroup_conf).get("cgroupplugin", "").lower() == "disabled"


def _accounting(accounting: Accounting | None) -> Section:
    if accounting is None:
        return Section("ACCOUNTING", [property_line("AccountingStorageType", "accounting_storage/none")])
    host, port = names.accounting(accounting.metadata.name), keys.PORT_SLURMDBD
    external = accounting.spec.external_config
    if accounting.spec.external and external is not None:
        host, port = external.host, external.port
    return Section(
        "ACCOUNTING",
        [
            property_line("AccountingStorageType", "accounting_storage/slurmdbd"),
            _word("AccountingStorageHost", host),
            property_line("AccountingStoragePort", port),
        ],
    )


def _slurmctld_scripts(controller: Controller, inputs: ConfigInputs) -> list[str]:
    spec = controller.spec
    prologs = _scripts(spec.prolog_slurmctld_script_refs, "prologSlurmctldScriptRefs", inputs)
    epilogs = _scripts(spec.epilog_slurmctld_script_refs, "epilogSlurmctldScriptRefs", inputs)
    return [
        *(property_line("PrologSlurmctld", f"{keys.DIR_CONFIG}/{name}") for name in prologs),
        *(property_line("EpilogSlurmctld", f"{keys.DIR_CONFIG}/{name}") for name in epilogs),
    ]


def _node_scripts(controller: Controller, inputs: ConfigInputs) -> list[str]:
    """Bare file names: that is how slurmctld hands scripts out to configless nodes."""
    prologs = _scripts(controller.spec.prolog_script_refs, "prologScriptRefs", inputs)
    epilogs = _scripts(controller.spec.epilog_script_refs, "epilogScriptRefs", inputs)
    return [
        *(property_line("Prolog", name) for name in prologs),
        *(property_line("Epilog", name) for name in epilogs),
    ]


def _scripts(refs: Sequence[LocalObjectReference], where: str, inputs: ConfigInputs) -> list[str]:
    """Names of all scripts of one kind in bytewise order, wherever they come from."""
    return sorted((name for name, _ in _files(refs, where, inputs)), key=str.encode)


def _files(
    refs: Sequence[LocalObjectReference], where: str, inputs: ConfigInputs
) -> Iterator[tuple[str, str]]:
    for ref in refs:
        data = inputs.config_maps.get(ref.name)
        if data is None:
            raise BuildError(f"spec.{where}", f"there is no ConfigMap {ref.name!r} in this namespace")
        yield from data.items()


def _nodeset_lines(controller: Controller, nodesets: Sequence[NodeSet]) -> list[str]:
    lines: list[str] = []
    for nodeset in members(controller, nodesets):
        if nodeset_problem(nodeset):
            continue
        name, partition = nodeset.slurm_name, nodeset.spec.partition
        lines.append(f"NodeSet={name} Feature={name}")
        if partition.enabled and not partition_problem(controller, nodeset, nodesets):
            lines.append(f"PartitionName={name} Nodes={name} {partition.config}")
    return lines


def _external_sections(controller: Controller, inputs: ConfigInputs) -> list[Section]:
    external = controller.spec.external_config
    if external is None:
        raise BuildError("spec.externalConfig", "is needed when spec.external is true")
    return [
        Section(
            "GENERAL",
            [
                _word("ClusterName", controller.cluster_name),
                property_line("SlurmUser", keys.SLURM_USER),
                _word("SlurmctldHost", external.host),
                property_line("SlurmctldPort", external.port),
            ],
        ),
        Section("PLUGINS & PARAMETERS", _auth_types()),
        _accounting(inputs.accounting),
    ]

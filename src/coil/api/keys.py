"""Well-known keys and constants (spec: control-plane 2, nodeset 3)."""

from typing import Final

# Applications, which name the main containers, and components.
SLURMCTLD: Final = "slurmctld"
REHEARSAL: Final = "slurmctld-rehearsal"
SLURMDBD: Final = "slurmdbd"
SLURMRESTD: Final = "slurmrestd"
SLURMD: Final = "slurmd"
LOGIN: Final = "login"
COMPONENT_CONTROLLER: Final = "controller"
COMPONENT_ACCOUNTING: Final = "accounting"
COMPONENT_RESTAPI: Final = "restapi"
COMPONENT_LOGIN: Final = "login"
COMPONENT_WORKER: Final = "worker"

# Labels.
LABEL_NAME: Final = "app.kubernetes.io/name"
LABEL_INSTANCE: Final = "app.kubernetes.io/instance"
LABEL_COMPONENT: Final = "app.kubernetes.io/component"
LABEL_CLUSTER: Final = "slinky.slurm.net/cluster"
"""Workers: name of the Controller."""
LABEL_ACTIVE: Final = "controller.slinky.slurm.net/active"
"""`true` on the slurmctld pod in charge, absent on the others."""
LABEL_POD_NAME: Final = "nodeset.slinky.slurm.net/pod-name"
LABEL_POD_INDEX: Final = "nodeset.slinky.slurm.net/pod-index"
"""Padded ordinal; scaling mode StatefulSet only."""
LABEL_POD_HOSTNAME: Final = "nodeset.slinky.slurm.net/pod-hostname"
LABEL_POD_PROTECT: Final = "nodeset.slinky.slurm.net/pod-protect"
"""`true` while the worker is busy and protected."""
LABEL_SCALING_MODE: Final = "nodeset.slinky.slurm.net/scaling-mode"
LABEL_REVISION: Final = "controller.kubernetes.io/hash"

# Annotations of pods and workloads.
ANNOTATION_DEFAULT_CONTAINER: Final = "kubectl.kubernetes.io/default-container"
ANNOTATION_SLURM_KEY_HASH: Final = "slinky.slurm.net/slurm-key-hash"
ANNOTATION_JWT_KEY_HASH: Final = "slinky.slurm.net/jwt-key-hash"
ANNOTATION_SLURM_CONFIG_HASH: Final = "slinky.slurm.net/slurm-config-hash"
ANNOTATION_LIVE_KEY: Final = "slinky.slurm.net/live-jwt-key"
"""StatefulSet of slurmctld: hash of the JWT key that was given to running pods."""
ANNOTATION_JWT_ALGORITHM: Final = "slinky.slurm.net/jwt-algorithm"
"""Token: `RS256` when its key is an RSA private key; HS256 otherwise."""
ANNOTATION_LIVE_CONFIG: Final = "slinky.slurm.net/live-config"
"""slurmctld pods: the configuration generation whose files the kubelet was last asked for."""
ANNOTATION_RESTART_FOR: Final = "slinky.slurm.net/restart-for"
"""Configuration ConfigMap: hash of the last configuration that needed new slurmctld pods."""
ANNOTATION_REHEARSAL: Final = "slinky.slurm.net/rehearsal"
"""Controller: `off` lets configurations through without a rehearsal."""
ANNOTATION_REHEARSED: Final = "slinky.slurm.net/rehearsed"
"""Rehearsal pods and the candidate ConfigMap: the configuration generation they are for."""
ANNOTATION_REFUSED: Final = "slinky.slurm.net/refused"
"""Candidate ConfigMap: why slurmctld refused that generation."""
ANNOTATION_POD_TEMPLATE: Final = "slinky.slurm.net/pod-template"
"""StatefulSets and Deployments: hashes of what their pods are made from and of the template as left."""
ANNOTATION_STANDS_FOR: Final = "slinky.slurm.net/stands-for"
"""ControllerRevisions: the hash that this version gives to what the revision's pods were made from."""
RESTARTED_AT: Final = "kubectl.kubernetes.io/restartedAt"
"""Pod templates: when somebody asked for a restart."""
ANNOTATION_SLURMDBD_CONF_HASH: Final = "slinky.slurm.net/slurmdbd-conf-hash"
ANNOTATION_SSH_HOST_KEYS_HASH: Final = "slinky.slurm.net/ssh-host-keys-hash"
ANNOTATION_SSHD_CONF_HASH: Final = "slinky.slurm.net/sshd-conf-hash"
ANNOTATION_SSSD_CONF_HASH: Final = "slinky.slurm.net/sssd-conf-hash"
ANNOTATION_POD_CORDON: Final = "nodeset.slinky.slurm.net/pod-cordon"
"""`true`: drain this pod's Slurm node."""
ANNOTATION_POD_CORDON_CAUSE: Final = "nodeset.slinky.slurm.net/pod-cordon-cause"
"""Why the operator set pod-cordon; absent on cordons that users set."""
ANNOTATION_HELD: Final = "nodeset.slinky.slurm.net/held"
"""NodeSets: cordons and drains of others that the operator has to bring to pods to come, as JSON."""
ANNOTATION_POD_DELETION_COST: Final = "nodeset.slinky.slurm.net/pod-deletion-cost"
"""int32 as text; lower goes first."""
ANNOTATION_POD_DEADLINE: Final = "nodeset.slinky.slurm.net/pod-deadline"
"""RFC 3339 time by which running work must end."""
ANNOTATION_TOPOLOGY: Final = "topology.slinky.slurm.net/spec"
"""Slurm dynamic topology text; users write it on nodes, the operator on worker pods."""

# Annotations that users write on Kubernetes nodes.
ANNOTATION_FEATURES: Final = "features.slinky.slurm.net/spec"
"""Feature names, separated by commas."""
ANNOTATION_NODE_CORDON_REASON: Final = "nodeset.slinky.slurm.net/node-cordon-reason"
ANNOTATION_HOSTNAME_OVERRIDE: Final = "nodeset.slinky.slurm.net/hostname-override"

FINALIZER_RESERVATION: Final = "nodeset.slinky.slurm.net/reservation"
"""On a NodeSet: a Slurm reservation of it may exist."""
TAINT_WORKER: Final = "nodeset.slinky.slurm.net/worker"
"""Effect NoExecute, empty value; workers tolerate it."""

# What the operator owns inside Slurm.
FEATURE_PREFIX: Final = "k8s/"

# Condition types of worker pods are this and the state, such as Idle.
CONDITION_PREFIX: Final = "SlurmNodeState"

# Ports.
PORT_SLURMCTLD: Final = 6817
PORT_SLURMD: Final = 6818
PORT_SLURMDBD: Final = 6819
PORT_SLURMRESTD: Final = 6820
PORT_SSH: Final = 22

# Users.
SLURM_USER: Final = "slurm"
SLURM_UID: Final = 401
SLURM_GID: Final = 401
SLURMD_USER: Final = "root"
NOBODY_UID: Final = 65534
NOBODY_GID: Final = 65534

# Paths inside the daemons' containers.
DIR_CONFIG: Final = "/etc/slurm"
DIR_STAGING_SOURCE: Final = "/mnt/slurm"
DIR_STAGING_TARGET: Final = "/mnt/etc/slurm"
DIR_RUN: Final = "/run"
DIR_AUTH_SOCKET: Final = "/run/slurmctld"
DIR_SACKD: Final = "/run/slurm"
SACK_SOCKET: Final = "/run/slurm/sack.socket"
DIR_LOG: Final = "/var/log/slurm"
LOG_SLURMCTLD: Final = "/var/log/slurm/slurmctld.log"
LOG_SLURMD: Final = "/var/log/slurm/slurmd.log"
DIR_SPOOL_SLURMCTLD: Final = "/var/spool/slurmctld"
DIR_SPOOL_SLURMD: Final = "/var/spool/slurmd"

# Files.
FILE_SLURM_CONF: Final = "slurm.conf"
FILE_SLURMDBD_CONF: Final = "slurmdbd.conf"
FILE_SLURM_KEY: Final = "slurm.key"
FILE_SLURM_JWKS: Final = "slurm.jwks"
FILE_JWT_KEY: Final = "jwt.key"
FILE_JWKS: Final = "jwks.json"
FILE_SSHD_CONFIG: Final = "sshd_config"
FILE_SSSD_CONF: Final = "sssd.conf"

# Volumes.
VOLUME_ETC: Final = "slurm-etc"
VOLUME_CONFIG: Final = "slurm-config"
VOLUME_RUN: Final = "run"
VOLUME_LOGFILE: Final = "slurm-logfile"
VOLUME_AUTH_SOCKET: Final = "slurm-authsocket"
VOLUME_STATE: Final = "statesave"
VOLUME_SACKD: Final = "sackd-dir"
VOLUME_SSH_CONFIG: Final = "ssh-config"
VOLUME_SSH_HOST_KEYS: Final = "ssh-host-keys"
VOLUME_SSSD_CONF: Final = "sssd-conf"

"""The core kinds coil reads and writes, each with its view.

Secrets and ConfigMaps have two entries: one for reading their content, one (`*_MANIFESTS`) for
comparing them with what coil built.
"""

from coil.kube.resource import Resource
from coil.kube.views import (
    ConfigMapView,
    LeaseView,
    ManifestView,
    MetadataView,
    NodeView,
    PodView,
    SecretView,
)

PODS = Resource(plural="pods", kind="Pod", view=PodView)
NODES = Resource(plural="nodes", kind="Node", view=NodeView, namespaced=False)
SECRETS = Resource(plural="secrets", kind="Secret", view=SecretView)
CONFIG_MAPS = Resource(plural="configmaps", kind="ConfigMap", view=ConfigMapView)
SECRET_MANIFESTS = Resource(plural="secrets", kind="Secret", view=ManifestView)
CONFIG_MAP_MANIFESTS = Resource(plural="configmaps", kind="ConfigMap", view=ManifestView)
SERVICES = Resource(plural="services", kind="Service", view=ManifestView)
CLAIMS = Resource(plural="persistentvolumeclaims", kind="PersistentVolumeClaim", view=ManifestView)
STATEFUL_SETS = Resource(group="apps", plural="statefulsets", kind="StatefulSet", view=ManifestView)
DEPLOYMENTS = Resource(group="apps", plural="deployments", kind="Deployment", view=ManifestView)
DISRUPTION_BUDGETS = Resource(
    group="policy", plural="poddisruptionbudgets", kind="PodDisruptionBudget", view=ManifestView
)
LEASES = Resource(group="coordination.k8s.io", plural="leases", kind="Lease", view=LeaseView)
EVENTS = Resource(group="events.k8s.io", plural="events", kind="Event", view=MetadataView)

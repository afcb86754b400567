"""Our six kinds as the client and the caches want them named."""

from coil.api.accounting import Accounting
from coil.api.controller import Controller
from coil.api.loginset import LoginSet
from coil.api.meta import GROUP, VERSION
from coil.api.nodeset import NodeSet
from coil.api.restapi import RestApi
from coil.api.token import Token
from coil.kube.resource import Resource
from coil.kube.views import ManifestView

CONTROLLERS = Resource(group=GROUP, version=VERSION, plural="controllers", kind="Controller", view=Controller)
ACCOUNTINGS = Resource(group=GROUP, version=VERSION, plural="accountings", kind="Accounting", view=Accounting)
RESTAPIS = Resource(group=GROUP, version=VERSION, plural="restapis", kind="RestApi", view=RestApi)
NODESETS = Resource(group=GROUP, version=VERSION, plural="nodesets", kind="NodeSet", view=NodeSet)
LOGINSETS = Resource(group=GROUP, version=VERSION, plural="loginsets", kind="LoginSet", view=LoginSet)
TOKENS = Resource(group=GROUP, version=VERSION, plural="tokens", kind="Token", view=Token)

SERVICE_MONITORS = Resource(
    group="monitoring.coreos.com",
    version="v1",
    plural="servicemonitors",
    kind="ServiceMonitor",
    view=ManifestView,
)
"""Prometheus operator; many clusters do not serve it, so it is never watched."""

// Package main is CoreDNS with the plugins that a lab needs: a quarter of the build time of all of them.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/metrics"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/template"
)

func init() {
	// The order in which they see a query, as in CoreDNS's own plugin.cfg.
	dnsserver.Directives = []string{
		"health", "ready", "prometheus", "errors", "log", "cache", "loadbalance", "template", "kubernetes",
	}
}

func main() { coremain.Run() }

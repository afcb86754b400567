//go:build tools

// Package tools pins what the lab builds.
package tools

import (
	_ "helm.sh/helm/v4/cmd/helm"
)

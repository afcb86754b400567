//go:build tools

// Package tools pins what the lab builds.
package tools

import (
	_ "go.etcd.io/etcd/server/v3"
)

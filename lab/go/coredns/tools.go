//go:build tools

// Package tools pins what the lab builds.
package tools

import (
	_ "github.com/coredns/coredns"
)

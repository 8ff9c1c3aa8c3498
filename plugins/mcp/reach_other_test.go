//go:build !linux

package mcp_test

import "github.com/modelcontextprotocol/go-sdk/mcp"

func addReach(*mcp.Server) {}

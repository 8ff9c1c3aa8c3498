// Package plugin has the plugin files of agents that load code instead of calling hooks. They send what happens to a
// gateway's socket (POST /hook/HOST), and do what it answers. What the gateway did not decide is refused, where the
// agent asks; where it only tells, it goes on.
//
// Stability: experimental.
package plugin

import (
	"bytes"
	"embed"
	"encoding/json"
	"strconv"
	"strings"
)

//go:embed opencode.ts amp.ts
var files embed.FS

//go:embed gateway.ts
var gateway string // what all of them begin with, with HOST for the host's name

// File returns the plugin file of a host, with the socket of its gateway where that is not the usual one (else empty), and
// with the command that starts the MCP server of plugins' tools, if there is one, for a host that lets a plugin add one. It is
// nil for hosts that load no plugin. The hosts load it from plugins/ of their own directories: "grapnel install" puts it there.
func File(host, socket string, server ...string) []byte {
	own, err := files.ReadFile(host + ".ts")
	if err != nil {
		return nil
	}
	text := strings.ReplaceAll(gateway, "HOST", host)
	if socket != "" {
		before, rest, _ := strings.Cut(text, "\nconst socket = ")
		_, after, _ := strings.Cut(rest, "\n")
		text = before + "\nconst socket = env.GRAPNEL_SOCKET ?? " + strconv.QuoteToASCII(socket) + "\n" + after
	}
	if command, err := json.Marshal(server); err == nil && len(server) > 0 {
		own = bytes.Replace(own, []byte("string[] = []"), append([]byte("string[] = "), command...), 1)
	}
	return []byte(text + "\n" + string(own))
}

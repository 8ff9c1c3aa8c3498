// Package plugin has the plugin files of agents that load code instead of calling hooks. They send what happens to a
// gateway's socket (POST /hook/HOST), and do what it answers. What the gateway did not decide is refused, where the
// agent asks; where it only tells, it goes on.
//
// Stability: experimental.
package plugin

import (
	"bytes"
	"embed"
	"strconv"
)

//go:embed *.ts
var files embed.FS

// File returns the plugin file of a host, with the socket of its gateway where that is not the usual one (else empty). It
// is nil for hosts that load none. The hosts load it from plugins/ of their own directories: "grapnel install" puts it there.
func File(host, socket string) []byte {
	text, err := files.ReadFile(host + ".ts")
	if err != nil {
		return nil
	}
	if socket == "" {
		return text
	}
	before, rest, _ := bytes.Cut(text, []byte("\nconst socket = "))
	_, after, _ := bytes.Cut(rest, []byte("\n"))
	line := "\nconst socket = env.GRAPNEL_SOCKET ?? " + strconv.QuoteToASCII(socket) + "\n"
	return append(append(bytes.Clone(before), line...), after...)
}

package proc

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/grapnelhq/grapnel/internal/wire"
)

// markKey is the variable by which a plugin's descendants are found.
const markKey = "GRAPNEL_MARK"

// socketDirKey tells a go-plugin server where to make its socket.
const socketDirKey = "PLUGIN_UNIX_SOCKET_DIR"

// handshakeEnv returns what go-plugin's servers read from their environment.
// The ports are for servers that cannot listen on a unix socket.
func handshakeEnv() []string {
	return []string{
		wire.HandshakeCookieKey + "=" + wire.HandshakeCookieValue,
		"PLUGIN_PROTOCOL_VERSIONS=" + strconv.Itoa(wire.ProtocolVersion), "PLUGIN_MIN_PORT=10000", "PLUGIN_MAX_PORT=25000",
	}
}

// reservedEnv lists the variables that only Grapnel sets. An
// operator who set one would break the handshake or the search for leftovers.
func reservedEnv() []string {
	return []string{
		wire.HandshakeCookieKey, markKey, socketDirKey, "PLUGIN_UNIX_SOCKET_GROUP",
		"PLUGIN_MIN_PORT", "PLUGIN_MAX_PORT", "PLUGIN_PROTOCOL_VERSIONS", "PLUGIN_CLIENT_CERT", "PLUGIN_MULTIPLEX_GRPC",
	}
}

// names returns all variables that e mentions.
func (e Environment) names() []string {
	return slices.AppendSeq(slices.Clone(e.Pass), maps.Keys(e.Set))
}

// environ returns a plugin's whole environment, sorted by name. dir is its
// private folder; handshake is what go-plugin's servers read besides.
func (e Environment) environ(lookup func(string) (string, bool), dir, mark string, handshake []string) []string {
	vars := map[string]string{}
	for _, name := range slices.Concat(requiredEnv(), e.Pass) {
		if v, ok := lookup(name); ok {
			vars[name] = v
		}
	}
	// Servers built with an old go-plugin make their socket in TMPDIR.
	vars["TMPDIR"] = dir
	maps.Copy(vars, e.Set)
	for _, entry := range handshake {
		if name, v, ok := strings.Cut(entry, "="); ok {
			vars[name] = v
		}
	}
	vars[socketDirKey] = dir
	vars[markKey] = mark

	list := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		list = append(list, name+"="+vars[name])
	}
	return list
}

package proc

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

// Defaults of Spec, and the bounds of stopping.
const (
	defaultStart = 10 * time.Second // defaultStart applies if the context has no deadline
	DefaultGrace = 2 * time.Second  // how long Stop lets a plugin end by itself
	// KillTime bounds each step of Stop beyond the grace: the kill, and the removal of the directory.
	KillTime = 300 * time.Millisecond
	// ClearTime bounds the removal of the directory in Clear, and the wait for killed processes that are ending.
	ClearTime      = 3 * time.Second
	DefaultLogRate = 100 // in lines a second; a burst may have twice as many
)

// Environment is all that a plugin gets of the host's environment.
type Environment struct {
	Pass []string          // Pass names variables to copy from the host where they are set
	Set  map[string]string // Set holds variables with their values; it wins over Pass
}

// Spec says what to start, and how. Start copies it.
type Spec struct {
	Name string // the operator's name for the plugin; required
	// Path is the absolute path of the program; required. With File set it is only argv[0] and the name in messages.
	Path string
	// File, if set, is executed instead of opening Path: the host's own binary, for built-in plugins. The caller keeps
	// it; several starts may share it. A process that is itself a plugin refuses it, which rules out fork bombs.
	File   *os.File
	Args   []string // the arguments after argv[0]
	Env    Environment
	SHA256 string // the expected checksum of the program in hex; "" means unpinned
	// Sums, if set, remembers the checksums of programs that are not pinned; several starts share it.
	Sums *Sums
	// Pins maps the absolute paths of further files, such as a script's interpreter, to their checksums.
	Pins map[string]string
	// AllowUnsafePath skips the check of who may write the program's file and its parent directories.
	AllowUnsafePath bool
	Sandbox         Sandbox
	// Spawned, if set, is called when the program runs, before its handshake, so that it can be measured. It
	// must not block.
	Spawned func(*Process)
	// MutualTLS authenticates both sides with certificates made for this start (some 15 ms). Without it the
	// private directory and the peer credentials do; a loopback address has credentials only on Linux and is
	// refused elsewhere. Windows always uses it.
	MutualTLS bool
	// Stdio makes the program speak on its standard input and output instead of a socket: Streams has the host's ends.
	Stdio    bool
	NoCookie bool // NoCookie starts the program as a person does, without the cookie in its environment
	// CountOrphans has the processes counted that outlive the program, before they are killed: see Process.Orphans.
	CountOrphans bool
	Frame        int           // the largest message in bytes; 0 is package wire's default
	Grace        time.Duration // Grace defaults to DefaultGrace, LogRate to DefaultLogRate
	LogRate      int
	// Log receives the plugin's stderr line by line, cleaned; nil discards. It is called from one goroutine at
	// a time and must not block: the plugin's output waits for it.
	Log func(LogLine)
	// Redact, if set, removes secrets from what goes to Log and to Exit, before a text is cleaned and cut and
	// once again after. It is called from several goroutines.
	Redact func(string) string
	// RuntimeDir is where the private directory is made; "" is $XDG_RUNTIME_DIR if usable, else the temporary
	// directory.
	RuntimeDir string
	Now        func() time.Time // the clock of log lines and exits; nil is time.Now
	Random     io.Reader        // the source of the mark; nil is crypto/rand

	_ struct{}
}

func (s Spec) withDefaults() (Spec, error) {
	if err := s.validate(); err != nil {
		return s, err
	}
	s.Args = slices.Clone(s.Args)
	s.MutualTLS = !s.Stdio && (s.MutualTLS || runtime.GOOS == "windows")
	if s.Grace <= 0 {
		s.Grace = DefaultGrace
	}
	if s.LogRate <= 0 {
		s.LogRate = DefaultLogRate
	}
	if s.Log == nil {
		s.Log = func(LogLine) {}
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	if s.Random == nil {
		s.Random = rand.Reader
	}
	return s, nil
}

// validate checks what a caller may have got wrong. Its errors are permanent.
func (s Spec) validate() error {
	var problem string
	switch {
	case s.Name == "" || strings.ContainsAny(s.Name, "/\\\x00"):
		problem = fmt.Sprintf("plugin name %q is empty or holds a slash", s.Name)
	case !filepath.IsAbs(s.Path):
		problem = fmt.Sprintf("path %q is not absolute", s.Path)
	case s.SHA256 != "" && !isSHA256(s.SHA256):
		problem = fmt.Sprintf("checksum %q is not 64 hex digits", s.SHA256)
	}
	for path, sum := range s.Pins {
		if !filepath.IsAbs(path) || !isSHA256(sum) {
			problem = fmt.Sprintf("pin %q: %q is not an absolute path with 64 hex digits", path, sum)
		}
	}
	for _, name := range slices.AppendSeq(slices.Clone(s.Env.Pass), maps.Keys(s.Env.Set)) {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			problem = fmt.Sprintf("environment variable %q has no valid name", name)
		} else if slices.Contains(reservedEnv(), name) {
			problem = fmt.Sprintf("environment variable %s is set by Grapnel itself", name)
		}
	}
	if problem == "" {
		return nil
	}
	return phases.Errorf(phases.CauseExecFailed, "plugin %q cannot be started: %s", s.Name, problem)
}

func isSHA256(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 32
}

// InsidePlugin reports whether this process is itself a plugin, which never starts its own binary as one.
func InsidePlugin() bool {
	return os.Getenv(wire.HandshakeCookieKey) == wire.HandshakeCookieValue
}

const (
	markKey      = "GRAPNEL_MARK"
	socketDirKey = "PLUGIN_UNIX_SOCKET_DIR"
)

// handshakeEnv returns what go-plugin's servers read. The ports are for servers that cannot listen on a unix socket.
func (s Spec) handshakeEnv() (list []string) {
	if !s.NoCookie {
		list = append(list, wire.HandshakeCookieKey+"="+wire.HandshakeCookieValue)
	}
	if s.Stdio {
		return append(list, wire.TransportKey+"="+wire.TransportStdio)
	}
	return append(list, "PLUGIN_PROTOCOL_VERSIONS="+strconv.Itoa(wire.ProtocolVersion), "PLUGIN_MIN_PORT=10000", "PLUGIN_MAX_PORT=25000")
}

// reservedEnv lists variables whose change by an operator would break the handshake or the search for leftovers.
func reservedEnv() []string {
	return []string{
		wire.HandshakeCookieKey, wire.TransportKey, wire.LaneKey, markKey, socketDirKey, "PLUGIN_UNIX_SOCKET_GROUP",
		"PLUGIN_MIN_PORT", "PLUGIN_MAX_PORT", "PLUGIN_PROTOCOL_VERSIONS", "PLUGIN_CLIENT_CERT", "PLUGIN_MULTIPLEX_GRPC",
	}
}

// environ returns a plugin's whole environment, sorted by name.
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

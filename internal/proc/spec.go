package proc

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

// Defaults of Spec, and the bounds of stopping.
const (
	// DefaultStart is the start deadline where the context has none.
	DefaultStart = 10 * time.Second
	// DefaultGrace is the time that Stop gives a plugin to end by itself.
	DefaultGrace = 2 * time.Second
	// KillTime bounds each step of Stop beyond the grace: the kill with the search for
	// descendants, and the removal of the folder.
	KillTime = 300 * time.Millisecond
	// ClearTime is what Clear may take to remove a folder that took Stop longer, and what
	// is waited for processes that have been killed and are ending.
	ClearTime = 3 * time.Second
	// DefaultLogRate is the number of log lines a second; twice that in one go.
	DefaultLogRate = 100
)

// Environment says what of the environment a plugin gets. Nothing else of the
// host's environment reaches it.
type Environment struct {
	// Pass names variables that are copied from the host where they are set.
	Pass []string
	// Set holds variables with their values; it wins over Pass.
	Set map[string]string
}

// Spec says what to start, and how. Start copies it.
type Spec struct {
	// Name is the operator's name for the plugin; required.
	Name string
	// Path is the absolute path of the program; required. With File set it is
	// only the program's argv[0] and its name in messages.
	Path string
	// File, if set, is executed instead of opening Path: a host's own binary,
	// opened when the host began, for its built-in plugins. It stays the
	// caller's and may serve several starts at once. A process that is itself
	// a plugin refuses it, which makes a fork bomb impossible.
	File *os.File
	// Args are the arguments after argv[0].
	Args []string
	Env  Environment
	// SHA256 is the expected checksum of the program in hex; "" is unpinned.
	SHA256 string
	// Pins are further files with their checksums, such as a script's
	// interpreter: absolute path to hex.
	Pins map[string]string
	// AllowUnsafePath skips the check of who may write the program's file and
	// the folders above it.
	AllowUnsafePath bool
	// Sandbox confines the process; the zero value does no more than every
	// start does.
	Sandbox Sandbox
	// Spawned, if set, is called when the program runs and before it has shaken
	// hands, so that it can be measured from then on. It must not block.
	Spawned func(*Process)
	// MutualTLS makes host and plugin prove to each other who they are with
	// certificates made for this start, which takes some 15 ms more. Without it
	// the private folder and the system's word on who is at the other end of
	// the connection do that; a system other than Linux gives none for a
	// loopback address, which is refused there. The plugin must be made with a
	// go-plugin that knows it. It is always true on Windows, where go-plugin's
	// servers listen on loopback addresses.
	MutualTLS bool
	// Frame is the largest message in bytes; 0 is package wire's default.
	Frame int
	// Grace is how long Stop lets the plugin end by itself; 0 is DefaultGrace.
	Grace time.Duration
	// LogRate bounds the lines a second given to Log; 0 is DefaultLogRate.
	LogRate int
	// Log receives what the plugin writes to stderr, line by line, cleaned. It
	// is called from one goroutine at a time and must not block: the plugin's
	// output waits for it. nil discards.
	Log func(LogLine)
	// Redact, if set, takes secrets out of a text that the plugin has written, before
	// it is cleaned and cut and once again after: for Log, and for the last words in
	// Exit. It is called from several goroutines.
	Redact func(string) string
	// RuntimeDir is where the private folder is made. "" is $XDG_RUNTIME_DIR
	// if that is fit, otherwise the temporary folder.
	RuntimeDir string
	// Now is the clock of log lines and exits; nil is time.Now.
	Now func() time.Time
	// Random is the source of the mark; nil is crypto/rand.
	Random io.Reader

	_ struct{}
}

// withDefaults returns the spec with its zero values filled in and its lists
// copied, or what is wrong with it.
func (s Spec) withDefaults() (Spec, error) {
	if err := s.validate(); err != nil {
		return s, err
	}
	s.Args = slices.Clone(s.Args)
	s.MutualTLS = s.MutualTLS || runtime.GOOS == "windows"
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

// validate checks what a caller may have got wrong. The errors are permanent.
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
	for _, name := range s.Env.names() {
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

// isSHA256 reports whether s is a SHA-256 checksum in hex.
func isSHA256(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 32
}

// InsidePlugin reports whether this process was itself started as a plugin.
// Such a process never starts its own binary as a plugin again.
func InsidePlugin() bool {
	return os.Getenv(wire.HandshakeCookieKey) == wire.HandshakeCookieValue
}

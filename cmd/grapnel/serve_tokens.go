package main

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/internal/owned"
	"github.com/grapnelhq/grapnel/internal/proc/peer"
	"github.com/grapnelhq/grapnel/internal/rpc"
	"github.com/grapnelhq/grapnel/runtime"
)

type access struct {
	tokens     []rpc.Token
	file       string
	made       bool // serve made the file, and the token in secretFile
	secretFile string
}

const (
	madeTokens = "tokens.yaml"
	madeSecret = "token"
)

// settleAccess decides who may call. Without a token file the loopback address is open only if all plugins are built
// in: a foreign plugin could call the gateway with everybody's rights. A socket always takes a token, because plugins
// run as its user and may connect to it.
func settleAccess(f *serveFlags, cfg *config.Config) (access, error) {
	if f.TokenFile != "" {
		tokens, err := readTokens(f.TokenFile)
		if err != nil {
			return access{}, usagef("--token-file: %w", err)
		}
		return access{tokens: tokens, file: f.TokenFile}, nil
	}
	if f.Socket == "" && !slices.ContainsFunc(cfg.Plugins, func(p config.Plugin) bool { return p.Builtin == "" }) {
		return access{}, nil
	}
	dir, err := dataDir()
	if err != nil {
		return access{}, usagef("callers need a token; give --token-file: %w", err)
	}
	a := access{made: true, file: filepath.Join(dir, madeTokens), secretFile: filepath.Join(dir, madeSecret)}
	if err := makeTokens(&a); err != nil {
		return access{}, unable(fmt.Errorf("callers need a token, and none can be made: %w", err))
	}
	if a.tokens, err = readTokens(a.file); err != nil {
		return access{}, usagef("%w; correct the file, or remove it and %s for a new token", err, a.secretFile)
	}
	return a, nil
}

// servedRoots are the directories that callers may name. Only its own user can call a gateway that has nothing but a
// socket, and the token that serve made: whatever its plugins read for a caller, the caller can read without it. Such a
// gateway takes any directory, unless the configuration has roots.
func servedRoots(f *serveFlags, a *access, cfg *config.Config) []string {
	if len(cfg.Serve.Roots) == 0 && f.Listen == "" && a.made {
		return []string{string(filepath.Separator)}
	}
	return cfg.Serve.Roots
}

func readTokens(path string) ([]rpc.Token, error) {
	list, err := config.LoadTokens(path)
	if err != nil {
		return nil, err
	}
	tokens := make([]rpc.Token, len(list.Tokens))
	for i, t := range list.Tokens {
		tokens[i] = rpc.Token{Name: t.Name, SHA256: t.SHA256, Workspaces: t.Workspaces}
		for _, r := range t.Rights {
			tokens[i].Rights = append(tokens[i].Rights, rpc.Right(r))
		}
	}
	return tokens, rpc.CheckTokens(tokens)
}

// makeTokens writes the two files if they are absent. Two gateways that start at once write the same: the secret of
// the first, and the hash that follows from it.
func makeTokens(a *access) error {
	dir := filepath.Dir(a.file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := owned.Dir(dir); err != nil { // somebody may have been quicker
		return err
	}
	if _, err := os.Lstat(a.file); err == nil {
		return nil // the operator's by now; what is wrong with it, reading it says
	}
	if err := createWhole(a.secretFile, []byte(rand.Text()+rand.Text()+"\n")); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	data, err := owned.Token(a.secretFile)
	if err != nil {
		return err
	}
	secret, err := parseSecret(a.secretFile, data)
	if err != nil {
		return err
	}
	text := "# Made by grapnel serve. The token itself is in the file \"" + madeSecret + "\" beside this one.\n" +
		"tokens:\n  - name: local\n    sha256: \"" + sum([]byte(secret)) + "\"\n" +
		"    workspaces: ['*']\n    rights: [read, write, compile, dispatch, admin]\n"
	if err := createWhole(a.file, []byte(text)); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

const maxSecret = 4096

func readSecret(path string) (string, error) {
	data, err := owned.Secret(path)
	if err != nil {
		return "", err
	}
	return parseSecret(path, data)
}

func parseSecret(path string, data []byte) (string, error) {
	secret := strings.TrimSpace(string(data))
	switch {
	case strings.HasPrefix(secret, "tokens:") || strings.Contains(secret, "\ntokens:"):
		return "", fmt.Errorf("%s is the gateway's file, which has hashes: callers need a file with the token itself", path)
	case secret == "" || len(secret) > maxSecret || strings.ContainsAny(secret, " \t\r\n"):
		return "", fmt.Errorf("%s holds no token: one line without blanks", path)
	}
	return secret, nil
}

// Nothing is unpacked or read before something is counted.
func countTokens(o *runtime.Options, model string) error {
	counter, err := history.NewCounter(history.CounterOptions{Encoding: history.EncodingFor(model)})
	if err != nil {
		return err
	}
	o.CountTokens, o.TokenizerName = counter.Count, string(counter.Encoding())
	table := sync.OnceValues(compiler.LoadCacheFacts)
	o.CacheRules = func(provider, model string) (compiler.CacheRules, bool) {
		known, err := table()
		if err != nil {
			return compiler.CacheRules{}, false // a test of compiler excludes it
		}
		return known.Rules(provider, model)
	}
	return nil
}

// note is the file by which status and docs find a gateway of this user and verify that it is
// that one. A gateway has one while it serves.
type note struct {
	Schema     int       `json:"schema"`
	PID        int       `json:"pid"`
	Started    string    `json:"started"` // [peer.Started] of the process: another one may have its number by now
	URL        string    `json:"url"`
	Socket     string    `json:"socket"`
	Secret     []byte    `json:"secret"`      // known to this gateway and to readers of this file
	SecretFile string    `json:"secret_file"` // where the token is that serve made; empty where it made none
	StartedAt  time.Time `json:"started_at"`

	path string
}

const noteSchema = 2

// target prefers the socket, whose callers are not rate-limited.
func (n *note) target() string {
	if n.Socket != "" {
		return unixScheme + n.Socket
	}
	return n.URL
}

func noteDir() (string, error) {
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "grapnel"), nil
	}
	dir, err := dataDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "run"), nil
}

// If the note cannot be written the gateway serves anyway: it can still be called by its address.
func (a *app) noteGateway(s *serving) *note {
	n := &note{
		Schema: noteSchema, PID: os.Getpid(), Started: peer.Started(os.Getpid()), URL: s.doors.url(), Socket: s.doors.socket,
		Secret: s.secret, SecretFile: s.access.secretFile, StartedAt: time.Now().UTC(),
	}
	n.sweep()
	if err := n.write(); err != nil {
		n.path = ""
		reportf(a.err, "grapnel: status will not find this gateway by itself: %s\n", err.Error())
	}
	return n
}

func (n *note) write() error {
	dir, err := noteDir()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := owned.Dir(dir); err != nil {
		return err
	}
	data, err := json.Marshal(n) //nolint:gosec // the file is for this user alone
	if err != nil {
		return err
	}
	n.path = filepath.Join(dir, "gateway-"+strconv.Itoa(n.PID)+".json")
	// One that is there is of a process that had this number before.
	if err := os.Remove(n.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return createWhole(n.path, append(data, '\n'))
}

func (n *note) remove() {
	if n.path != "" {
		_ = os.Remove(n.path) // status reports one that stays as stale
		_ = os.Remove(filepath.Dir(n.path))
	}
}

// readNotes omits notes that another user could read or write: they say where tokens are sent.
func readNotes() ([]note, error) {
	dir, err := noteDir()
	if err != nil {
		return nil, err
	}
	literal := strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(dir)
	paths, err := filepath.Glob(filepath.Join(literal, "gateway-*.json"))
	if err != nil {
		return nil, err
	}
	var list []note
	for _, path := range paths {
		if n := readNote(path); n != nil {
			list = append(list, *n)
		}
	}
	slices.SortFunc(list, func(a, b note) int { return a.StartedAt.Compare(b.StartedAt) })
	return list, nil
}

const maxNote = 16 << 10

func readNote(path string) *note {
	f, err := owned.Open(path, os.O_RDONLY)
	if err != nil {
		return nil
	}
	defer f.Close() //nolint:errcheck // it was only read
	n := note{path: path}
	err = json.NewDecoder(io.LimitReader(f, maxNote)).Decode(&n)
	if err != nil || n.Schema != noteSchema || len(n.Secret) == 0 || cmp.Or(n.URL, n.Socket) == "" {
		return nil
	}
	return &n
}

// sweep removes notes of gateways that ended without doing so.
func (n *note) sweep() {
	list, err := readNotes()
	if err != nil {
		return // nobody depends on it
	}
	for i := range list {
		if list[i].target() == n.target() || !list[i].lives() {
			_ = os.Remove(list[i].path)
		}
	}
}

func (n *note) lives() bool { return n.Started != "" && peer.Started(n.PID) == n.Started }

func (n *note) at(target string) bool {
	if path, ok := strings.CutPrefix(target, unixScheme); ok {
		abs, err := filepath.Abs(path)
		return err == nil && n.Socket == abs
	}
	u, err := url.Parse(target)
	own, bad := url.Parse(n.URL)
	return err == nil && bad == nil && n.URL != "" && (u.Scheme == "http" || u.Scheme == "ws") && u.Port() == own.Port() &&
		(u.Hostname() == own.Hostname() || isThisMachine(u.Hostname()) && isThisMachine(own.Hostname()))
}

func isThisMachine(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && (addr.Unmap().IsLoopback() || addr.IsUnspecified())
}

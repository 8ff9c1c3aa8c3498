package main

import (
	"cmp"
	"context"
	"crypto/rand"
	_ "embed" // for the defaults
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/gateway"
	"github.com/grapnelhq/grapnel/internal/engine/jobs"
	"github.com/grapnelhq/grapnel/internal/owned"
	"github.com/grapnelhq/grapnel/internal/proc/peer"
	"github.com/grapnelhq/grapnel/internal/tree"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store"
)

// serveDefaults is the configuration of serve that is in force without a file.
//
//go:embed serve_defaults.yaml
var serveDefaults []byte

// drainTime is how long calls in flight may take to end. With closeTime behind it, serve ends within ten seconds.
const drainTime = 6 * time.Second

type serveFlags struct {
	recordFlags

	// Listen is empty where nothing is listened to but the socket.
	Listen    string `default:"127.0.0.1:0" flag:"listen"                                                                                          usage:"{ADDRESS} to listen at; port 0 takes a free one. Other than loopback needs --token-file"`
	Socket    string `flag:"socket"         usage:"unix socket to listen at, for this user alone ({PATH}; alone it replaces --listen)"`
	Persona   string `flag:"persona"        usage:"persona directory {DIR}, prepared at start (default grapnel/home in the user's data directory)"`
	TokenFile string `flag:"token-file"     usage:"YAML {FILE} of the tokens' hashes that callers need; see: grapnel schema tokens"`
	Open      bool   `flag:"open"           usage:"open the page in a browser, logged in by a code for one login"`
	Watch     bool   `flag:"watch"          usage:"read configuration and tokens again when their files change (also: serve.watch)"`

	ownLogLevel bool
}

func (f *serveFlags) parsed(c *cobra.Command) {
	if f.Socket != "" && !c.Flags().Changed("listen") {
		f.Listen = ""
	}
	f.ownLogLevel = c.Flags().Changed("log-level")
}

type serving struct {
	flags   *serveFlags
	cfg     *config.Config
	from    origin
	ref     storeRef
	persona string

	logger *slog.Logger
	looked fileLook // how the files were before they were read
	access access
	secret []byte // proves the gateway to those who may read its note
	doors  *doors
	store  *store.Store
	queue  jobs.Queue
	tree   tree.Store
	events gateway.Events
}

// serve opens everything, serves, and closes everything in reverse order.
func (a *app) serve(ctx context.Context, f *serveFlags, _ []string) (err error) {
	a.record = f.recordFlags
	if !f.ownLogLevel {
		a.LogLevel = "info" // nobody watches, so the log is all there is
	}
	s := &serving{flags: f, looked: lookAt(a.watchedFiles(f.TokenFile)), secret: []byte(rand.Text())}
	if err := a.prepareServe(s); err != nil {
		return err
	}
	if err := checkStore(s.ref); err != nil {
		return err
	}
	// From here on files and ports are touched.
	if s.access, err = settleAccess(f, s.cfg); err != nil {
		return err
	}
	if s.access.made {
		maps.Copy(s.looked, lookAt([]string{s.access.file}))
	}
	if s.doors, err = openDoors(ctx, f); err != nil {
		return err
	}
	defer s.doors.close()
	if s.store, err = openStore(ctx, s.ref, s.cfg, store.Options{}); err != nil {
		return storeError(err)
	}
	defer func() { err = firstOf(err, s.store.Close()) }()
	if err := checkStore(s.ref); err != nil { // somebody may have been quicker
		return err
	}
	if s.queue, err = s.store.Queue(jobs.QueueOptions{Logger: s.logger}); err != nil {
		return storeError(err)
	}
	if s.tree, err = s.store.Tree(ctx); err != nil {
		return unable(oneLine{err})
	}
	return a.serveOpened(ctx, s)
}

// firstOf returns the error of some work, else the error of closing afterwards.
func firstOf(err, closed error) error {
	if err == nil && closed != nil {
		return unable(closed)
	}
	return err
}

func (a *app) prepareServe(s *serving) error {
	cfg, from, err := a.serveConfig()
	if err != nil {
		return err
	}
	s.cfg, s.from, s.ref, s.persona = cfg, from, a.storeNamed(cfg, from), s.flags.Persona
	if s.ref.dsn == "" {
		if s.ref, err = serveStore(); err != nil {
			return err
		}
	}
	if s.persona == "" {
		dir, err := dataDir()
		if err != nil {
			return usagef("%w; give --persona", err)
		}
		s.persona = filepath.Join(dir, "home")
	}
	if s.logger, err = a.logger(); err != nil {
		return err
	}
	return checkListen(s.flags)
}

// serveStore is the default store of serve.
func serveStore() (storeRef, error) {
	dir, err := dataDir()
	if err != nil {
		return storeRef{}, usagef("%w; give --store", err)
	}
	dsn := sqliteScheme + filepath.Join(dir, "grapnel.db")
	return storeRef{dsn, dsn}, nil
}

func (a *app) serveConfig() (*config.Config, origin, error) {
	from, err := a.configOrigin()
	if err != nil || from.Path != "" {
		return a.loadConfig()
	}
	cfg, err := config.Parse(serveDefaults, from.name())
	return cfg, from, err
}

func (a *app) serveOpened(ctx context.Context, s *serving) error {
	hangups := make(chan os.Signal, 1) // without a handler the first one would end the process
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	opts := runtime.Options{
		WaitFor: runtime.WaitRequired, Sink: s.store, State: s.store, Queue: s.queue, PersonaDir: s.persona, SeedPersona: true,
		Services: map[string]runtime.Service{gateway.ServiceDocuments: gateway.Documents(s.tree)},
		OnEvent:  s.events.Observe,
	}
	if err := countTokens(&opts, ""); err != nil {
		return unable(err)
	}
	return a.withEngine(ctx, s.cfg, opts, func(ctx context.Context, eng *runtime.Engine) error {
		g, err := a.newGateway(s, eng, opts.CountTokens)
		if err != nil {
			return err
		}
		defer a.reloadOnChange(ctx, g, s, hangups)()
		if s.access.made {
			reportf(a.err, "grapnel: callers need a token: it is in %s, its hash in %s\n", s.access.secretFile, s.access.file)
		}
		note := a.noteGateway(s)
		defer note.remove()
		if err := a.sayListening(s.doors); err != nil {
			return unable(err)
		}
		if threadPromptChars(s.cfg) == 0 {
			s.logger.Warn("documents of the thread tree are in no prompt: the configuration has no plugin agentsdoc with source: both (or tree) and the grants for it")
		}
		if s.flags.Open {
			a.openPage(ctx, g, s)
		}
		s.logger.Info("serving", "target", s.doors.target(), "socket", s.doors.socket, "store", s.ref.name, "tokens", s.access.file)
		err = g.Serve(ctx, s.doors.listeners...)
		if err != nil {
			return unable(err)
		}
		s.logger.Info("serving has ended")
		return nil
	})
}

func (a *app) newGateway(s *serving, eng *runtime.Engine, countTokens func(string) int) (*gateway.Gateway, error) {
	again := &reloader{app: a, flags: s.flags, ref: s.ref, access: s.access, engine: eng, now: s.cfg}
	kept := &s.cfg.Serve.Conversations
	g, err := gateway.New(gateway.Options{
		Tree: s.tree, Engine: servedEngine{eng}, Log: s.store,
		Roots: servedRoots(s.flags, &s.access, s.cfg), Facts: compiler.Facts{OS: goruntime.GOOS}, PromptChars: threadPromptChars(s.cfg),
		TurnIdle: s.cfg.Serve.TurnIdle.D(), Turns: s.cfg.Serve.Turns,
		Conversations: gateway.Conversations{
			Workspaces: kept.Workspaces, Log: s.store, CountTokens: countTokens,
			ContextTokens: kept.ContextTokens, ReserveTokens: kept.ReserveTokens, MaxEntries: kept.MaxEntries,
		},
		Jobs: servedJobs{s.store.Jobs()}, Memories: servedMemories{a}, Events: &s.events, Backtests: servedBacktests{a},
		Tokens: s.access.tokens, Hosts: append(s.doors.hosts(), s.cfg.Serve.Hosts...), Origins: s.cfg.Serve.Origins,
		Limits: gateway.Limits{Drain: drainTime},
		Probe:  s.store.DB().Probe, Secret: s.secret, Version: version, StoreName: s.ref.name, Logger: s.logger,
		ConfigChange: refuseChange, HasTools: hasTools, Above: aboveInstalled(),
		Config: s.from.name(), Load: again.load, OnReload: a.reportReload,
	})
	if err != nil {
		return nil, usagef("%w", err) // a root that is not there
	}
	return g, nil
}

type listening struct {
	URL    string `json:"url"    jsonschema:"where HTTP and WebSocket are served; empty with a socket alone"`
	Socket string `json:"socket" jsonschema:"path of the unix socket; empty for none"`
	PID    int    `json:"pid"`
}

// sayListening prints at once: whoever started the gateway waits for the line.
func (a *app) sayListening(d *doors) error {
	line := "listening on " + printable(d.target())
	if a.JSON {
		data, err := json.Marshal(listening{d.url(), d.socket, os.Getpid()})
		if err != nil {
			return err
		}
		line = string(escapeJSON(data))
	}
	if _, err := fmt.Fprintln(a.stdout, line); err != nil {
		return fmt.Errorf("the address of the gateway cannot be printed: %w", err)
	}
	return nil
}

var errInUse = errors.New("a program answers there already")

// doors are the gateway's listeners.
type doors struct {
	listeners []net.Listener
	tcp       *net.TCPAddr
	socket    string
	release   func() // removes the socket, if it is still the one that was opened
}

// url is where HTTP is served; empty for a socket alone.
func (d *doors) url() string {
	if d.tcp == nil {
		return ""
	}
	return "http://" + d.tcp.String()
}

func (d *doors) target() string { return cmp.Or(d.url(), unixScheme+d.socket) }

// hosts are the names that callers may use besides loopback: the operator's address, which no web page can point
// elsewhere.
func (d *doors) hosts() []string {
	if d.tcp == nil || d.tcp.IP.IsLoopback() || d.tcp.IP.IsUnspecified() {
		return nil
	}
	return []string{d.tcp.IP.String()}
}

func (d *doors) close() {
	for _, l := range d.listeners {
		_ = l.Close() // it may be closed, and is of no use any more
	}
	if d.release != nil {
		d.release()
	}
}

const unixScheme = "unix:"

const maxSocketPath = 103 // how long a socket's path may be on every system

func checkListen(f *serveFlags) error {
	if f.Socket != "" {
		path, err := filepath.Abs(f.Socket)
		if err != nil {
			return usagef("--socket %s: %w", f.Socket, err)
		}
		if f.Socket = path; len(path) > maxSocketPath {
			return usagef("--socket %s: the path has %d bytes, and systems take %d; choose a shorter one", path, len(path), maxSocketPath)
		}
	}
	if f.Listen == "" && f.Open {
		return usagef("--open: a browser needs an address; give --listen 127.0.0.1:0 beside --socket")
	}
	if f.Listen == "" {
		return nil
	}
	addr, err := net.ResolveTCPAddr("tcp", f.Listen)
	if err != nil {
		return usagef("--listen %q: use HOST:PORT, such as 127.0.0.1:7433: %w", f.Listen, err)
	}
	if !addr.IP.IsLoopback() && f.TokenFile == "" {
		return usagef("--listen %s: others than this machine could call it, so it needs --token-file; use 127.0.0.1 for this machine alone", f.Listen)
	}
	return nil
}

func openDoors(ctx context.Context, f *serveFlags) (*doors, error) {
	d := &doors{}
	if f.Listen != "" {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.Listen)
		if err != nil {
			return nil, unable(fmt.Errorf("--listen %s: %w", f.Listen, plainListenError(err)))
		}
		d.listeners = append(d.listeners, l)
		d.tcp, _ = l.Addr().(*net.TCPAddr)
	}
	if f.Socket != "" {
		l, err := openSocket(ctx, f.Socket)
		if err != nil {
			d.close()
			return nil, err
		}
		d.listeners, d.socket, d.release = append(d.listeners, l), f.Socket, ownSocket(f.Socket)
	}
	return d, nil
}

func plainListenError(err error) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w; choose another port, or 0 for a free one", errInUse)
	}
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Err
	}
	return err
}

// openSocket listens at a unix socket that this user alone can open. It replaces a stale socket and nothing else.
func openSocket(ctx context.Context, path string) (net.Listener, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, usagef("--socket %s: %w", path, unwrapPath(err))
	}
	if err := owned.Dir(dir); err != nil {
		return nil, usagef("--socket %s: %w", path, err)
	}
	unlock, err := lockBeside(ctx, path, socketLockTime, "another gateway opens it")
	if err != nil {
		return nil, unable(fmt.Errorf("--socket %s: %w", path, err))
	}
	defer unlock() // two gateways that replace a socket at once do so one after the other
	if err := clearSocket(ctx, path); err != nil {
		return nil, err
	}
	l, err := listenPrivately(ctx, path)
	if err != nil {
		return nil, unable(fmt.Errorf("--socket %s: %w", path, plainListenError(err)))
	}
	return &ownUser{l}, nil
}

// ownUser accepts connections of its own user and of root only, whatever the socket's mode is.
type ownUser struct{ net.Listener }

func (l *ownUser) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || peer.Check(conn) == nil {
			return conn, err
		}
		_ = conn.Close() // there is nothing to say to it
	}
}

const socketLockTime = 2 * knock

const knock = 2 * time.Second // bounds a connection attempt. The system accepts for whoever listens, at once

func clearSocket(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return usagef("--socket %s: %w", path, unwrapPath(err))
	case info.Mode().Type() != fs.ModeSocket:
		return usagef("--socket %s: something else is there, and it is not touched; choose another path", path)
	}
	ctx, cancel := context.WithTimeout(ctx, knock)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = conn.Close() // nothing was said
		return unable(fmt.Errorf("--socket %s: %w", path, errInUse))
	case !errors.Is(err, syscall.ECONNREFUSED):
		return unable(fmt.Errorf("--socket %s: it is unknown whether somebody answers there: %w", path, plainListenError(err)))
	}
	if err := os.Remove(path); err != nil {
		return unable(fmt.Errorf("--socket %s: nobody answers there, and it cannot be replaced: %w", path, unwrapPath(err)))
	}
	return nil
}

func ownSocket(path string) func() {
	own, err := os.Lstat(path)
	if err != nil {
		return func() {}
	}
	return func() {
		if now, err := os.Lstat(path); err == nil && os.SameFile(own, now) {
			_ = os.Remove(path) // if it stays, the next start replaces it
		}
	}
}

func dataDir() (string, error) {
	dir, err := userDir("XDG_DATA_HOME", ".local", "share")
	if err != nil {
		return "", fmt.Errorf("there is no data directory ($XDG_DATA_HOME, $HOME): %w", err)
	}
	if err := checkPlace(dir); err != nil {
		return "", fmt.Errorf("the data directory %s ($XDG_DATA_HOME, $HOME): %w", dir, err)
	}
	return dir, nil
}

// checkPlace is [owned.Dir] of the nearest directory that exists.
func checkPlace(dir string) error {
	for {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			return owned.Dir(dir)
		}
		dir = filepath.Dir(dir)
	}
}

// checkStore refuses a SQLite file that another user made or could replace: prompts are compiled from it, and its
// triggers would run as this user.
func checkStore(ref storeRef) error {
	path, ok := strings.CutPrefix(ref.dsn, sqliteScheme)
	if !ok {
		return nil
	}
	path, err := filepath.Abs(path)
	if err == nil {
		err = checkPlace(filepath.Dir(path))
	}
	if info, missing := os.Stat(path); err == nil && missing == nil {
		err = owned.File(path, info)
	}
	if err != nil {
		return usagef("the store %s: %w", ref.name, err)
	}
	return nil
}

package main

import (
	"context"
	"crypto/rand"
	_ "embed" // for the defaults
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	goruntime "runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/gateway"
	"github.com/grapnelhq/grapnel/gateway/rpc"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store"
	"github.com/grapnelhq/grapnel/store/jobqueue"
	"github.com/grapnelhq/grapnel/store/treestore"
)

// serveDefaults is the configuration of serve that is in force without a file.
//
//go:embed serve_defaults.yaml
var serveDefaults []byte

// drainTime is how long calls in flight may take to end. With closeTime behind it
// for the plugins, serve ends within ten seconds.
const drainTime = 6 * time.Second

// serveFlags are the flags of serve.
type serveFlags struct {
	// listen is empty where nothing is listened to but the socket.
	listen, socket string
	home           string
	tokenFile      string
	// watch says that files are read again when they change.
	watch bool
}

// serveCommand is the gateway.
func (a *app) serveCommand() *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the gateway: threads with their AGENTS.md documents, turns and manifests, by JSON-RPC",
		Long: "Serve answers JSON-RPC 2.0 at POST /rpc and as WebSocket at /ws, over TCP and over a unix\n" +
			"socket, until it gets SIGTERM or SIGINT. When it is ready it prints one line,\n" +
			"\"listening on http://HOST:PORT\"; with --socket and no --listen it opens no port, and the\n" +
			"line is \"listening on unix:PATH\". GET /healthz, /readyz and /metrics are for operators.\n\n" +
			"Without a store (--store, or store: in the configuration) everything is kept in\n" +
			"grapnel/grapnel.db in the user's data folder ($XDG_DATA_HOME). Without a token file\n" +
			"whoever can reach the loopback address may call, as long as every plugin of the\n" +
			"configuration is built in; otherwise, and with --socket, serve makes a token, and says\n" +
			"where. grapnel status and docs find it.\n\n" +
			"SIGHUP reads the configuration and the token file again, and so does grapnel config reload;\n" +
			"with --watch a change of one of them does. Files with a mistake change nothing. What a reload\n" +
			"cannot change, such as the store, it refuses by name.",
		Example: "  grapnel serve\n" +
			"  grapnel serve --listen 127.0.0.1:7433 --store postgres://me@db/grapnel\n" +
			"  grapnel serve --socket \"$XDG_RUNTIME_DIR/grapnel.sock\"\n" +
			"  grapnel serve --listen 10.0.0.5:7433 --token-file tokens.yaml",
		Args: noArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			if f.socket != "" && !c.Flags().Changed("listen") {
				f.listen = ""
			}
			for _, name := range []string{"listen", "socket", "home", "token-file"} {
				if given := c.Flags().Lookup(name); given.Changed && given.Value.String() == "" {
					return usagef("--%s is empty; leave it out for the default", name)
				}
			}
			if !c.Flags().Changed("log-level") {
				a.logLevel = "info" // nobody watches, so the log is all there is
			}
			return a.serve(c.Context(), &f)
		},
	}
	a.record.register(c)
	flags := c.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:0", "`ADDRESS` to listen at; port 0 takes a free one. Other than loopback needs --token-file")
	flags.StringVar(&f.socket, "socket", "", "unix socket to listen at, for this user alone (`PATH`; alone it replaces --listen)")
	flags.StringVar(&f.home, "home", "", "runtime home `DIR`, prepared at start (default grapnel/home in the user's data folder)")
	flags.StringVar(&f.tokenFile, "token-file", "", "YAML `FILE` of the tokens' hashes that callers need; see: grapnel schema tokens")
	flags.BoolVar(&f.watch, "watch", false, "read configuration and tokens again when their files change (also: serve.watch)")
	return c
}

// serving is a gateway before it serves: what was opened and checked.
type serving struct {
	flags *serveFlags
	cfg   *config.Config
	from  origin
	ref   storeRef
	home  string

	// looked is how the files were before they were read.
	looked fileLook
	access access
	// secret is what the gateway proves itself by to who may read its note.
	secret []byte
	doors  *doors
	store  *store.Store
	queue  *jobqueue.Queue
	tree   *treestore.Store
}

// serve opens everything, serves, and closes everything in the other order.
func (a *app) serve(ctx context.Context, f *serveFlags) (err error) {
	s := &serving{flags: f, looked: lookAt(a.watchedFiles(f.tokenFile)), secret: []byte(rand.Text())}
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
	if s.queue, err = a.openQueue(ctx, s.store); err != nil {
		return err
	}
	defer func() { err = firstOf(err, s.queue.Close()) }()
	if s.tree, err = treestore.New(ctx, s.store.DB(), treestore.Options{}); err != nil {
		return unable(oneLine{err})
	}
	defer func() { err = firstOf(err, s.tree.Close()) }()
	return a.serveOpened(ctx, s)
}

// openQueue opens the store's queue of background work.
func (a *app) openQueue(ctx context.Context, s *store.Store) (*jobqueue.Queue, error) {
	logger, err := a.logger()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, openTime, errNoAnswer)
	defer cancel()
	q, err := jobqueue.Open(ctx, s.DB(), jobqueue.Options{Logger: logger})
	if err != nil {
		return nil, storeError(err)
	}
	return q, nil
}

// firstOf is the error of the work, else that of closing what it worked on.
func firstOf(err, closed error) error {
	if err == nil && closed != nil {
		return unable(closed)
	}
	return err
}

// prepareServe reads the configuration and settles the places. It creates nothing.
func (a *app) prepareServe(s *serving) error {
	cfg, from, err := a.serveConfig()
	if err != nil {
		return err
	}
	s.cfg, s.from, s.ref, s.home = cfg, from, a.storeNamed(cfg, from), s.flags.home
	if s.ref.dsn == "" || s.home == "" {
		dir, err := dataFolder()
		if err != nil {
			return usagef("%w; give --store and --home", err)
		}
		if s.ref.dsn == "" {
			s.ref = serveStore(dir)
		}
		if s.home == "" {
			s.home = filepath.Join(dir, "home")
		}
	}
	if _, err := a.logger(); err != nil {
		return err
	}
	return checkListen(s.flags)
}

// serveStore is the store of serve where none is named, in the data folder.
func serveStore(dir string) storeRef {
	dsn := sqliteScheme + filepath.Join(dir, "grapnel.db")
	return storeRef{dsn, dsn}
}

// serveConfig is loadConfig with the defaults of serve.
func (a *app) serveConfig() (*config.Config, origin, error) {
	from, err := a.configOrigin()
	if err != nil || from.Path != "" {
		return a.loadConfig()
	}
	cfg, err := config.Parse(serveDefaults, from.name())
	return cfg, from, err
}

// serveOpened runs engine and gateway on what is open.
func (a *app) serveOpened(ctx context.Context, s *serving) error {
	hangups := listenForHangups()
	defer hangups.stop()
	opts := runtime.Options{
		WaitFor: runtime.WaitRequired, Sink: s.store, State: s.store, Queue: s.queue, Home: s.home, SeedHome: true,
		Services: map[string]runtime.Service{gateway.ServiceDocuments: gateway.Documents(s.tree)},
	}
	if err := countTokens(&opts, ""); err != nil {
		return unable(err)
	}
	return a.withEngine(ctx, s.cfg, opts, func(ctx context.Context, eng *runtime.Engine) error {
		g, err := a.newGateway(s, eng)
		if err != nil {
			return err
		}
		defer a.reloadWhenTold(ctx, g, s, hangups)()
		if s.access.made {
			tellf(a.err, "grapnel: callers need a token: it is in %s, its hash in %s\n", s.access.secretFile, s.access.file)
		}
		note := a.noteGateway(s)
		defer note.remove()
		if err := a.sayListening(s.doors); err != nil {
			return unable(err)
		}
		if err := a.serveUntilTold(ctx, g, s); err != nil {
			return unable(err)
		}
		return nil
	})
}

// serveUntilTold serves until ctx ends, which is no error.
func (a *app) serveUntilTold(ctx context.Context, g *gateway.Gateway, s *serving) error {
	logger, err := a.logger()
	if err != nil {
		return err
	}
	if threadPromptChars(s.cfg) == 0 {
		logger.Warn("documents of the thread tree are in no prompt: the configuration has no plugin agentsdoc with source: both (or tree) and the grants for it")
	}
	logger.Info("serving", "target", s.doors.target(), "socket", s.doors.socket, "store", s.ref.name, "tokens", s.access.file)
	err = g.Serve(ctx, s.doors.listeners...)
	logger.Info("serving has ended", "error", err)
	return err
}

// newGateway joins what is open.
func (a *app) newGateway(s *serving, eng *runtime.Engine) (*gateway.Gateway, error) {
	logger, err := a.logger()
	if err != nil {
		return nil, err
	}
	again := &reloader{app: a, flags: s.flags, ref: s.ref, access: s.access, engine: eng, now: s.cfg}
	g, err := gateway.New(gateway.Options{
		Tree: s.tree, Engine: eng, Log: s.store,
		Roots: s.cfg.Serve.Roots, Facts: compiler.Facts{OS: goruntime.GOOS}, PromptChars: threadPromptChars(s.cfg),
		TurnIdle: s.cfg.Serve.TurnIdle.D(), Turns: s.cfg.Serve.Turns,
		RPC: rpc.Options{
			Tokens: s.access.tokens, Hosts: append(s.doors.hosts(), s.cfg.Serve.Hosts...), Origins: s.cfg.Serve.Origins,
			Limits: rpc.Limits{Drain: drainTime},
		},
		Probe: s.store.DB().Probe, Secret: s.secret, Version: version, StoreName: s.ref.name, Logger: logger,
		Config: s.from.name(), Load: again.load, OnReload: a.tellReload,
	})
	if err != nil {
		return nil, usagef("%w", err) // a root that is not there
	}
	return g, nil
}

// listening is the JSON of serve: one line, when it is ready.
type listening struct {
	URL    string `json:"url"    jsonschema:"where HTTP and WebSocket are served; empty with a socket alone"`
	Socket string `json:"socket" jsonschema:"path of the unix socket; empty for none"`
	PID    int    `json:"pid"`
}

// sayListening prints the one line. It goes out at once: whoever started the
// gateway waits for it.
func (a *app) sayListening(d *doors) error {
	line := "listening on " + printable(d.target())
	if a.json {
		data, err := json.Marshal(listening{d.url(), d.socket, os.Getpid()})
		if err != nil {
			return err
		}
		line = string(escapeJSON(data))
	}
	if _, err := fmt.Fprintln(a.stdout, line); err != nil {
		return fmt.Errorf("nobody can be told where the gateway listens: %w", err)
	}
	return nil
}

// errInUse is why a place cannot be listened at.
var errInUse = errors.New("a program answers there already")

// doors are where the gateway listens.
type doors struct {
	listeners []net.Listener
	// tcp is the address of the port, nil without one; named says that the user
	// chose its host.
	tcp *net.TCPAddr
	// socket is the path of the socket; empty without one.
	socket string
	// release removes the socket, if it is still the one that was opened.
	release func()
}

// url is where HTTP is served; empty for a socket alone.
func (d *doors) url() string {
	if d.tcp == nil {
		return ""
	}
	return "http://" + d.tcp.String()
}

// target is what clients are given.
func (d *doors) target() string {
	if d.tcp == nil {
		return unixScheme + d.socket
	}
	return d.url()
}

// hosts are the names by which the port may be called besides those of loopback:
// the address that the operator gave. It is no name that a page could point here.
func (d *doors) hosts() []string {
	if d.tcp == nil || d.tcp.IP.IsLoopback() || d.tcp.IP.IsUnspecified() {
		return nil
	}
	return []string{d.tcp.IP.String()}
}

// close closes what was opened; what the gateway has closed already stays so.
func (d *doors) close() {
	for _, l := range d.listeners {
		_ = l.Close() // it may be closed, and is of no use any more
	}
	if d.release != nil {
		d.release()
	}
}

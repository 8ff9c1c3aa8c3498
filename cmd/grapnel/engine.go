package main

import (
	"context"
	_ "embed" // for the defaults
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/gateway"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/settings"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/thread"
	recording "github.com/grapnelhq/grapnel/internal/cli/record"
	"github.com/grapnelhq/grapnel/internal/engine/hostservice"
	"github.com/grapnelhq/grapnel/internal/engine/pool"
	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/internal/text/words"
	"github.com/grapnelhq/grapnel/internal/tree"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/store"
)

// defaults is the configuration in force without a file.
//
//go:embed defaults.yaml
var defaults []byte

const closeTime = 3 * time.Second // bounds the end of a command: plugins get their grace, then are killed

type origin struct {
	Path string
	Why  string
}

func (o origin) name() string {
	if o.Path == "" {
		return "built-in defaults"
	}
	return o.Path
}

// configOrigin never looks into the working directory: a repository must not configure who visits it.
func (a *app) configOrigin() (origin, error) {
	if a.Config != "" {
		return origin{a.Config, "--config"}, nil
	}
	if path := os.Getenv("GRAPNEL_CONFIG"); path != "" {
		return origin{path, "$GRAPNEL_CONFIG"}, nil
	}
	path, err := userConfigPath()
	if err != nil {
		return origin{Why: "there is no home directory to look in"}, nil //nolint:nilerr // only the defaults are left
	}
	switch _, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return origin{Why: "there is no " + path}, nil
	case err != nil:
		return origin{}, usagef("configuration: %w", err)
	}
	return origin{path, userConfig}, nil
}

const userConfig = "the user's configuration directory"

func userConfigPath() (string, error) {
	dir, err := userDir("XDG_CONFIG_HOME", ".config")
	return filepath.Join(dir, "grapnel.yaml"), err
}

// userDir is this program's directory below one of the user's, which a variable may name.
func userDir(variable string, fallback ...string) (string, error) {
	dir := os.Getenv(variable)
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(append([]string{home}, fallback...)...)
	}
	return filepath.Join(dir, "grapnel"), nil
}

func (a *app) loadConfig() (*config.Config, origin, error) {
	from, err := a.configOrigin()
	if err != nil {
		return nil, from, err
	}
	var cfg *config.Config
	if from.Path == "" {
		cfg, err = config.Parse(defaults, from.name())
	} else {
		cfg, err = config.Load(from.Path)
	}
	return cfg, from, err
}

// withEngine runs work on an engine and closes it afterwards. A signal cancels the work; a second one ends the process.
// Work should leave printing until the engine is closed.
func (a *app) withEngine(ctx context.Context, cfg *config.Config, o runtime.Options, work func(context.Context, *runtime.Engine) error) error {
	logger, err := a.logger()
	if err != nil {
		return err
	}
	if o.Builtins, err = firstParty().Launches(); err != nil {
		return err
	}
	o.Logger, o.Build = logger, manifest.Build(version)
	o.AllowRequiredDown = true // commands show what is down, and a gateway serves the rest
	if o.Services == nil {
		o.Services = map[string]runtime.Service{gateway.ServiceDocuments: gateway.Documents(nil)}
	}
	if o.State == nil {
		if kept := a.keptState(cfg); kept != nil {
			o.State = kept
			defer kept.close(a)
		}
	}
	if o.Sink == nil {
		// A command that keeps nothing does not warn about it.
		without := *cfg
		without.Store = config.Secret{}
		cfg = &without
	}
	// Before this there is nothing to clean up, and a signal ends the process.
	ctx, stop := interruptible(ctx, logger)
	defer stop()
	if len(cfg.Plugins) > 0 {
		if err := pool.CheckDirectory(ctx); err != nil {
			return unable(err)
		}
	}
	recorded, err := a.recordExchanges(&o)
	if err != nil {
		return err
	}
	defer recorded() // when the engine is closed
	lost := countLost(&o)
	stopProgress := a.showStarting(&o)
	eng, err := runtime.New(ctx, cfg, o)
	stopProgress()
	if err == nil {
		err = work(ctx, eng)
		// An interrupted command still stops its plugins in an orderly way.
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		if closed := eng.Close(closing); closed != nil {
			logger.Warn("close", "error", closed)
		}
		lost.report(a.err)
	}
	// Whatever failed, it failed because the user wanted it to.
	if err != nil && ctx.Err() != nil {
		return &exitError{code: exitInterrupted, err: errors.New("interrupted")}
	}
	return err
}

// interruptible returns a context that a signal cancels; a second one ends the process.
func interruptible(ctx context.Context, logger *slog.Logger) (context.Context, func()) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	signalled := context.AfterFunc(ctx, func() {
		stop()
		logger.Info("ending; a second signal does not wait")
	})
	return ctx, func() {
		signalled()
		stop()
	}
}

// threadPromptChars is how many characters of a document fit into a prompt; 0 if no prompt has documents.
func threadPromptChars(cfg *config.Config) int {
	for i := range cfg.Plugins {
		p := &cfg.Plugins[i]
		if p.Builtin != agentsName {
			continue
		}
		o := p.Subscriptions[p.Name+".thread_prompt"]
		c, err := settings.Parse(p.Config)
		if err != nil || c.Source == "" || c.Source == settings.SourceFiles || c.Enabled != nil && !*c.Enabled || o.Enabled != nil && !*o.Enabled {
			return 0
		}
		return max(0, promptChars(cfg, p, "thread_prompt", thread.MaxChars)-text.Chars(thread.FrameOpen)-text.Chars(thread.FrameClose)-len("\n\n"))
	}
	return 0
}

// storeRef names a store to open. The zero value is none.
type storeRef struct {
	dsn  string // opens it. It may hold a password, and is in no message
	name string
}

// A relative path is one from where it was written: the working directory, or the file's directory.
func (a *app) storeNamed(cfg *config.Config, from origin) storeRef {
	if a.Store != "" {
		return storeRef{a.Store, shownDSN(a.Store)}
	}
	if cfg.Store.Value == "" {
		return storeRef{}
	}
	dsn := cfg.Store.Value
	if path, embedded := strings.CutPrefix(dsn, sqliteScheme); embedded && !filepath.IsAbs(path) && !strings.HasPrefix(path, ":") {
		dsn = sqliteScheme + filepath.Join(filepath.Dir(from.Path), path)
	}
	if cfg.Store.FromEnv != "" {
		return storeRef{dsn, "the store in $" + cfg.Store.FromEnv}
	}
	return storeRef{dsn, shownDSN(dsn)}
}

const sqliteScheme = "sqlite:"

func shownDSN(dsn string) string {
	if strings.HasPrefix(dsn, sqliteScheme) {
		return dsn
	}
	u, err := url.Parse(dsn)
	if err != nil || u.Host == "" {
		return "the store"
	}
	return u.Scheme + "://" + u.Host + u.Path
}

// openTime bounds opening: a server that takes a connection and stays silent is out of reach too.
const openTime = 10 * time.Second

// noAnswer is the cause of an opening that took longer.
func noAnswer(dsn string) error {
	if strings.HasPrefix(dsn, sqliteScheme) {
		return fmt.Errorf("not open within %s; see which other program keeps the file busy (fuser FILE), and whether its disk answers", openTime)
	}
	return fmt.Errorf("no answer within %s; check that the server runs, and the address", openTime)
}

// openStore uses the configuration's keys, unless o has others.
func openStore(ctx context.Context, ref storeRef, cfg *config.Config, o store.Options) (*store.Store, error) {
	if len(o.Key) == 0 {
		o.Key = []byte(cfg.Manifest.ChainKey.Value)
	}
	o.FingerprintKey = []byte(cfg.Manifest.FingerprintKey.Value)
	ctx, cancel := context.WithTimeoutCause(ctx, openTime, noAnswer(ref.dsn))
	defer cancel()
	return store.Open(ctx, ref.dsn, o)
}

type openedStore struct {
	*store.Store

	ref            storeRef
	fingerprintKey []byte // the key of fingerprints, if they have one
	retention      config.Retention
}

// Reading commands give ReadOnly, so that looking at a log never changes it.
func (a *app) withStore(ctx context.Context, o store.Options, work func(s *openedStore) error) (err error) {
	cfg, from, err := a.loadConfig()
	if err != nil {
		return err
	}
	ref, err := a.storeWanted(cfg, from)
	if err != nil {
		return err
	}
	s, err := openStore(ctx, ref, cfg, o)
	if err != nil {
		return storeError(err)
	}
	defer func() { err = firstOf(err, s.Close()) }()
	return storeError(work(&openedStore{Store: s, ref: ref, fingerprintKey: []byte(cfg.Manifest.FingerprintKey.Value), retention: cfg.Manifest.Retention}))
}

// storeWanted returns the named store, else the one of serve and of agents' hooks if it exists.
func (a *app) storeWanted(cfg *config.Config, from origin) (storeRef, error) {
	ref := a.storeNamed(cfg, from)
	if ref.dsn != "" {
		return ref, nil
	}
	ref, err := serveStore()
	if err != nil {
		return ref, err
	}
	if _, err := os.Stat(strings.TrimPrefix(ref.dsn, sqliteScheme)); errors.Is(err, fs.ErrNotExist) {
		return ref, usagef("no store is named: give --store sqlite:PATH, or a configuration with store: (in force: %s); that of grapnel serve is not there yet: %s", from.name(), ref.name)
	}
	return ref, nil
}

// storeError gives a store's error its exit code: a bad DSN or an ambiguous id is wrong usage.
func storeError(err error) error {
	if err == nil {
		return nil
	}
	if _, coded := errors.AsType[*exitError](err); coded {
		return err
	}
	err = oneLine{err}
	if store.HasCode(err, store.CodeDSN) || store.HasCode(err, store.CodeAmbiguous) || store.HasCode(err, itemstore.CodeInvalid) {
		return usagef("%w", err)
	}
	return unable(err)
}

// oneLine shortens an error with many lines to one sentence.
type oneLine struct{ err error }

func (e oneLine) Error() string {
	const most = 4
	var s strings.Builder
	lines := strings.Split(e.err.Error(), "\n")
	for i, line := range lines[:min(len(lines), most)] {
		switch {
		case i > 0 && strings.HasSuffix(lines[i-1], ":"):
			s.WriteByte(' ')
		case i > 0:
			s.WriteString("; ")
		}
		s.WriteString(strings.TrimSpace(line))
	}
	if more := len(lines) - most; more > 0 {
		fmt.Fprintf(&s, "; and %d more", more)
	}
	return s.String()
}

func (e oneLine) Unwrap() error { return e.err }

// recordFlags are those of every command that dispatches.
type recordFlags struct {
	Record string      `flag:"record"    usage:"append what plugins are sent and answer to {FILE}, for plugin replay; it holds what users wrote"`
	Limit  config.Size `default:"256MiB" flag:"record-limit"                                                                                     usage:"the largest {SIZE} of that file; what is omitted is counted"`
}

func (a *app) recordExchanges(o *runtime.Options) (done func(), err error) {
	if a.record.Record == "" {
		return func() {}, nil
	}
	if a.record.Limit == 0 {
		return nil, usagef("--record-limit 0B: nothing would be recorded")
	}
	w, err := recording.Open(a.record.Record, recording.Options{MaxBytes: int64(a.record.Limit), Program: "grapnel " + version})
	if err != nil {
		return nil, usagef("--record %s: %w", a.record.Record, unwrapPath(err))
	}
	o.OnExchange = w.Write
	return func() {
		err := w.Close()
		if _, omitted, why := w.Counts(); omitted > 0 {
			reportf(a.err, "grapnel: --record %s: %s not in it: %v\n", a.record.Record, words.Count(omitted, "exchange is", "exchanges are"), why)
		} else if err != nil {
			reportf(a.err, "grapnel: --record %s: its end is missing: %v\n", a.record.Record, unwrapPath(err))
		}
	}, nil
}

// recorder keeps the manifest of a compiled turn, and remembers what became of it. A nil recorder keeps nothing.
type recorder struct {
	ref       storeRef
	sink      runtime.Sink
	documents tree.Store   // the thread tree's in the same store; nil likewise
	store     *store.Store // what was opened; nil where it could not be
	must      bool

	mu   sync.Mutex
	lost string
}

// A store that cannot be opened refuses each manifest, and the engine applies on_failure. If that would refuse the
// turn, it does not even begin.
func (a *app) openRecorder(ctx context.Context, cfg *config.Config, from origin) (*recorder, error) {
	ref := a.storeNamed(cfg, from)
	if ref.dsn == "" {
		return nil, nil
	}
	r := &recorder{ref: ref, must: cfg.Manifest.OnFailure == "refuse"}
	s, err := openStore(ctx, ref, cfg, store.Options{})
	switch {
	case err == nil:
		r.sink, r.store = s, s
		if r.documents, err = s.Tree(ctx); err != nil {
			return nil, errors.Join(storeError(err), s.Close())
		}
	case r.must || codeOf(storeError(err)) == exitUsage:
		return nil, storeError(err)
	default:
		r.sink = lostSink{err}
	}
	return r, nil
}

func (r *recorder) wire(o *runtime.Options) {
	if r == nil {
		return
	}
	o.State = hostservice.NewMemoryState() // where the store cannot be opened
	if r.store != nil {
		o.State = r.store
		o.Services = map[string]runtime.Service{gateway.ServiceDocuments: gateway.Documents(r.documents)}
	}
	o.Sink, o.OnEvent = r.sink, func(ev runtime.Event) {
		if ev.Kind == runtime.EventManifest && ev.State == "not_kept" {
			r.mu.Lock()
			r.lost = ev.Detail
			r.mu.Unlock()
		}
	}
}

func (r *recorder) close() error {
	if r == nil || r.store == nil {
		return nil
	}
	return r.store.Close()
}

func (r *recorder) whyLost() string {
	if r == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lost
}

func (r *recorder) refused() bool { return r.whyLost() != "" && r.must }

// lostSink stands for a store that cannot be opened.
type lostSink struct{ err error }

var _ runtime.Sink = lostSink{}

func (s lostSink) Append(context.Context, *manifest.Manifest, []manifest.Text) error { return s.err }

func (lostSink) Last(context.Context, string, string) (*manifest.Manifest, error) { return nil, nil }

// Report is never called: a command line has no provider.
func (s lostSink) Report(context.Context, manifest.Usage) error { return s.err }

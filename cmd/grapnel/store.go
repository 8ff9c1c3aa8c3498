package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/store"
)

// storeRef is a store before it is opened. The zero value is none.
type storeRef struct {
	// dsn opens it. It may hold a password, and is in no message.
	dsn string
	// name is what people are told.
	name string
}

// storeNamed finds the store of a command: that of --store, else the
// configuration's. A relative path is one from where it was written: the working
// folder, or the folder of the file.
func (a *app) storeNamed(cfg *config.Config, from origin) storeRef {
	if a.store != "" {
		return storeRef{a.store, shownDSN(a.store)}
	}
	if cfg.Store.Value == "" {
		return storeRef{}
	}
	dsn := besideFile(cfg.Store.Value, from.Path)
	if cfg.Store.FromEnv != "" {
		return storeRef{dsn, "the store in $" + cfg.Store.FromEnv}
	}
	return storeRef{dsn, shownDSN(dsn)}
}

// sqliteScheme begins the name of an embedded store.
const sqliteScheme = "sqlite:"

// besideFile makes the relative path of an embedded store one from the folder of
// the file that names it.
func besideFile(dsn, file string) string {
	path, embedded := strings.CutPrefix(dsn, sqliteScheme)
	if !embedded || filepath.IsAbs(path) || strings.HasPrefix(path, ":") {
		return dsn
	}
	return sqliteScheme + filepath.Join(filepath.Dir(file), path)
}

// shownDSN is a DSN without user, password and parameters.
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

// openTime bounds opening: a server that takes a connection and says nothing is
// out of reach too.
const openTime = 10 * time.Second

// errNoAnswer is why opening ended.
var errNoAnswer = fmt.Errorf("no answer within %s; check that the server runs, and the address", openTime)

// openStore opens a store with the configuration's keys, unless o has others.
func openStore(ctx context.Context, ref storeRef, cfg *config.Config, o store.Options) (*store.Store, error) {
	if len(o.Key) == 0 {
		o.Key = []byte(cfg.Manifest.ChainKey.Value)
	}
	o.FingerprintKey = []byte(cfg.Manifest.FingerprintKey.Value)
	ctx, cancel := context.WithTimeoutCause(ctx, openTime, errNoAnswer)
	defer cancel()
	return store.Open(ctx, ref.dsn, o)
}

// openedStore is the store that a command works on.
type openedStore struct {
	*store.Store

	ref storeRef
	// fingerprintKey is the key of fingerprints, if they have one.
	fingerprintKey []byte
}

// withStore opens the store, does a command's work on it, and closes it. Reading
// commands give ReadOnly, so that looking at a log never changes it.
func (a *app) withStore(ctx context.Context, o store.Options, work func(s *openedStore) error) (err error) {
	cfg, from, err := a.loadConfig()
	if err != nil {
		return err
	}
	ref := a.storeNamed(cfg, from)
	if ref.dsn == "" {
		return usagef("no store is named: give --store sqlite:PATH, or a configuration with store: (in force: %s)", from.name())
	}
	s, err := openStore(ctx, ref, cfg, o)
	if err != nil {
		return storeError(err)
	}
	defer func() {
		if closed := s.Close(); closed != nil && err == nil {
			err = unable(closed)
		}
	}()
	return work(&openedStore{Store: s, ref: ref, fingerprintKey: []byte(cfg.Manifest.FingerprintKey.Value)})
}

// storeError gives a failure of the store its exit code: a DSN that says nothing
// and an id that says too little are wrong usage, all else could not be done.
// What a command prints in its own words, such as an exit code of its own, stays.
func storeError(err error) error {
	if err == nil {
		return nil
	}
	if _, coded := errors.AsType[*exitError](err); coded {
		return err
	}
	err = oneLine{err}
	if store.HasCode(err, store.CodeDSN) || store.HasCode(err, store.CodeAmbiguous) {
		return usagef("%w", err)
	}
	return unable(err)
}

// oneLine is an error of a driver or a decoder, which may have many lines, as one
// sentence.
type oneLine struct{ err error }

// Error joins the first lines.
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

// Unwrap returns the error with all its lines.
func (e oneLine) Unwrap() error { return e.err }

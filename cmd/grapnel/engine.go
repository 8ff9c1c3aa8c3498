package main

import (
	"context"
	_ "embed" // for the defaults
	"errors"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/grapnelhq/grapnel/builtin"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/gateway"
	"github.com/grapnelhq/grapnel/runtime"
)

// defaults is the configuration that is in force without a file.
//
//go:embed defaults.yaml
var defaults []byte

// closeTime bounds the end of a command: plugins get their grace, then are
// killed.
const closeTime = 3 * time.Second

// origin says where the configuration comes from.
type origin struct {
	// Path is the file; empty for the built-in defaults.
	Path string
	// Why says who named it.
	Why string
}

// name is how the configuration is called in messages.
func (o origin) name() string {
	if o.Path == "" {
		return "built-in defaults"
	}
	return o.Path
}

// configOrigin finds the configuration: the flag, the environment, the user's
// configuration folder, the built-in defaults. Nothing is ever read from the
// working folder unasked.
func (a *app) configOrigin() (origin, error) {
	if a.config != "" {
		return origin{a.config, "--config"}, nil
	}
	if path := os.Getenv("GRAPNEL_CONFIG"); path != "" {
		return origin{path, "$GRAPNEL_CONFIG"}, nil
	}
	path, err := userConfigPath()
	if err != nil {
		return origin{Why: "there is no home folder to look in"}, nil //nolint:nilerr // only the defaults are left
	}
	switch _, err := os.Stat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return origin{Why: "there is no " + path}, nil
	case err != nil:
		return origin{}, usagef("configuration: %w", err)
	}
	return origin{path, "the user's configuration folder"}, nil
}

// userConfigPath is the place of the configuration in the user's folder.
func userConfigPath() (string, error) {
	dir := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "grapnel", "grapnel.yaml"), nil
}

// loadConfig reads the configuration in force.
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

// withEngine runs a command's work on an engine and closes it afterwards,
// whatever happened. A signal cancels the work; a second one ends the process.
// Work should leave printing until the engine is closed.
func (a *app) withEngine(ctx context.Context, cfg *config.Config, o runtime.Options, work func(context.Context, *runtime.Engine) error) error {
	logger, err := a.logger()
	if err != nil {
		return err
	}
	if o.Builtins, err = builtin.Launches(); err != nil {
		return err
	}
	o.Logger = logger
	if o.Services == nil {
		o.Services = map[string]runtime.Service{gateway.ServiceDocuments: gateway.Documents(nil)}
	}
	if o.Sink == nil {
		// What a command does not keep is nothing to warn of.
		without := *cfg
		without.Store = config.Secret{}
		cfg = &without
	}
	// Only from here on is there something to clean up. Before, while input is read
	// for instance, a signal ends the process as it ends any other.
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	signalled := context.AfterFunc(ctx, func() {
		stop()
		logger.Info("told to end; a second signal does not wait for anything")
	})
	defer signalled()

	recorded, err := a.recordExchanges(&o)
	if err != nil {
		return err
	}
	defer recorded() // when the engine is closed
	lost := countLost(&o)
	progress := a.startProgress(&o)
	eng, err := runtime.New(ctx, cfg, o)
	progress.stop()
	if err == nil {
		err = work(ctx, eng)
		// An interrupted command still stops its plugins in an orderly way.
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
		defer cancel()
		if closed := eng.Close(closing); closed != nil {
			logger.Warn("close", "error", closed)
		}
		lost.tell(a.err)
	}
	// Whatever failed, it failed because the user wanted it to.
	if err != nil && ctx.Err() != nil {
		return &exitError{code: exitInterrupted, err: errors.New("interrupted")}
	}
	return err
}

package main

import (
	"bytes"
	_ "embed" // for what is offered
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/home"
)

// initCommand writes the template. Having run it twice is no mistake: the second
// time says what was kept.
func (a *app) initCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "init",
		Short: "Write a commented grapnel.yaml to the configuration's place",
		Long: "Init writes a commented grapnel.yaml to --config, or to the user's configuration folder.\n" +
			"With --home it also prepares a runtime home: the folder, SOUL.md and IDENTITY.md.\n" +
			"It never overwrites: what is there is kept.",
		Example: "  grapnel init\n" +
			"  grapnel init --home ~/.local/share/grapnel/home",
		Args: noArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("home") && dir == "" {
				return usagef("--home needs a folder")
			}
			return a.initialise(dir)
		},
	}
	c.Flags().StringVar(&dir, "home", "", "also prepare the runtime home `DIR`")
	return c
}

// initialised is the JSON of init.
type initialised struct {
	Created []string `json:"created"`
	Kept    []string `json:"kept"`
}

// initialise writes what is missing and lists both.
func (a *app) initialise(dir string) error {
	path, err := a.initPath()
	if err != nil {
		return err
	}
	result := initialised{Created: []string{}, Kept: []string{}}
	created, err := createFile(path, firstConfig())
	if err != nil {
		return unable(err)
	}
	if created {
		result.Created = append(result.Created, path)
	} else {
		result.Kept = append(result.Kept, path)
	}
	if dir != "" {
		if err := result.seed(dir); err != nil {
			return unable(err)
		}
	}
	if a.json {
		return a.printJSON(result)
	}
	for _, p := range result.Created {
		a.println("created", p)
	}
	for _, p := range result.Kept {
		a.println("kept   ", p)
	}
	return nil
}

// seed prepares the runtime home.
func (r *initialised) seed(dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	created, kept, err := home.Seed(dir)
	r.Created, r.Kept = append(r.Created, created...), append(r.Kept, kept...)
	return err
}

// initPath is where the configuration would be looked for: what init creates is
// in force afterwards, without another flag.
func (a *app) initPath() (string, error) {
	path := a.config
	if path == "" {
		path = os.Getenv("GRAPNEL_CONFIG")
	}
	if path != "" {
		return filepath.Abs(path)
	}
	path, err := userConfigPath()
	if err != nil {
		return "", usagef("there is no home folder to put the configuration in; name a place with --config: %w", err)
	}
	return path, nil
}

// memoryOffer is the memory plugin with all that it needs, commented out: nobody gets
// a memory who has not asked for one.
//
//go:embed memory_offer.yaml
var memoryOffer []byte

// firstConfig is the template with the plugins of the built-in defaults declared
// in it: who writes a configuration to look at it must not lose by it what was in
// force without one. The memory is offered behind them.
func firstConfig() []byte {
	const list = "\nplugins:\n"
	_, declared, _ := bytes.Cut(defaults, []byte(list))
	return bytes.Replace(config.Template(), []byte(list), slices.Concat([]byte(list), declared, memoryOffer), 1)
}

// createFile writes a file that is not there yet. One that cannot be written
// whole is removed again.
func createFile(path string, content []byte) (created bool, err error) {
	if _, err := os.Lstat(path); err == nil {
		return false, nil
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return false, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if _, err := f.Write(content); err != nil {
		return false, errors.Join(err, f.Close(), os.Remove(path))
	}
	return true, f.Close()
}

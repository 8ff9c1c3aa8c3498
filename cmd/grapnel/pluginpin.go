package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
)

// pinResult is the JSON of plugin pin.
type pinResult struct {
	Plugins []pinned `json:"plugins" jsonschema:"the plugins with a command"`
	Written string   `json:"written" jsonschema:"the file that was changed; empty if none was"`
}

// pinned is one plugin with a command.
type pinned struct {
	Plugin string   `json:"plugin"`
	Path   string   `json:"path"   jsonschema:"the program that was found"`
	SHA256 string   `json:"sha256" jsonschema:"its checksum"`
	State  pinState `json:"state"  jsonschema:"how that compares with the configuration"`
}

// pinState compares a program with its checksum in the configuration.
type pinState string

const (
	pinUnpinned pinState = "unpinned"
	pinSame     pinState = "same"
	pinChanged  pinState = "changed"
)

// pluginPinCommand prints by default and writes when it is told to: a command
// that changes the operator's file does not do it by surprise.
func (a *app) pluginPinCommand() *cobra.Command {
	var write bool
	c := &cobra.Command{
		Use:   "pin [NAME]...",
		Short: "Show the checksums of the plugins' programs, or write them into the configuration",
		Long: "Pin hashes the programs of the plugins that have a command, or of those named, and\n" +
			"prints what to add to the configuration. With --write it edits the file: comments and\n" +
			"layout stay. Exit code 3 says that a program could not be read.",
		ValidArgsFunction: a.completePlugins,
		RunE:              func(_ *cobra.Command, args []string) error { return a.pluginPin(args, write) },
	}
	c.Flags().BoolVar(&write, "write", false, "write the checksums into the configuration file")
	return c
}

// pluginPin hashes all programs before it writes anything: a file is never left
// with half of the checksums.
func (a *app) pluginPin(names []string, write bool) error {
	from, err := a.configOrigin()
	if err != nil {
		return err
	}
	if from.Path == "" {
		return usagef("there is no configuration file (%s), and the built-in plugins need no checksum; name a file with --config", from.Why)
	}
	result := pinResult{}
	if result.Plugins, err = programs(from.Path, names); err != nil {
		return err
	}
	if write {
		changed, err := writePins(from.Path, result.Plugins)
		if err != nil {
			return err
		}
		if changed {
			result.Written = from.Path
		}
	}
	if a.json {
		return a.printJSON(result)
	}
	a.printPins(&result, write)
	return nil
}

// programs hashes the programs of all plugins with a command, or of some.
func programs(path string, names []string) ([]pinned, error) {
	cfg, err := config.Loader{AllowUnpinned: true}.Load(path) // this command is the remedy
	if err != nil {
		return nil, err
	}
	var known []string
	list := []pinned{}
	for i := range cfg.Plugins {
		p := &cfg.Plugins[i]
		known = append(known, p.Name)
		asked := slices.Contains(names, p.Name)
		switch {
		case asked && p.Command == "":
			return nil, usagef("the plugin %s has no command: there is nothing to pin", p.Name)
		case p.Command == "" || len(names) > 0 && !asked:
			continue
		}
		sum, err := hashProgram(p.Path)
		if err != nil {
			return nil, unable(fmt.Errorf("plugin %s: its program cannot be read: %w", p.Name, err))
		}
		list = append(list, pinned{p.Name, p.Path, sum, comparePin(p.SHA256, sum)})
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, usagef("no plugin %q is declared%s", name, phases.DidYouMean(name, known))
		}
	}
	return list, nil
}

// comparePin compares the checksum in the configuration with the program's.
func comparePin(have, sum string) pinState {
	switch have {
	case "":
		return pinUnpinned
	case sum:
		return pinSame
	}
	return pinChanged
}

// hashProgram hashes a regular file. The type is looked at first: opening a pipe
// would wait for somebody to write to it.
func hashProgram(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, err = io.Copy(h, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// writePins edits the configuration file, if anything changed. The new file
// takes the old one's place at once.
func writePins(path string, programs []pinned) (changed bool, err error) {
	sums := map[string]string{}
	for _, p := range programs {
		if p.State != pinSame {
			sums[p.Plugin] = p.SHA256
		}
	}
	if len(sums) == 0 {
		return false, nil
	}
	// Renaming onto a link would replace the link and leave the file as it is.
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return false, unable(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return false, unable(err)
	}
	edited, err := config.Pin(data, sums)
	if err != nil {
		return false, usagef("%s: %w", path, err)
	}
	return true, replaceFile(path, edited)
}

// replaceFile writes a file beside the old one, with its permissions, and
// renames it.
func replaceFile(path string, data []byte) error {
	info, err := os.Stat(path)
	if err != nil {
		return unable(err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".grapnel-*")
	if err != nil {
		return unable(err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(info.Mode().Perm()), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return unable(errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// printPins prints what was found, and what to write where that is left to do.
func (a *app) printPins(r *pinResult, write bool) {
	if len(r.Plugins) == 0 {
		a.println("no plugin has a command: there is nothing to pin")
		return
	}
	t := newTable("programs", "plugin", "state", "program")
	todo := false
	for _, p := range r.Plugins {
		t.add(p.Plugin, p.State, p.Path)
		todo = todo || p.State != pinSame
	}
	a.printTable(t)
	switch {
	case r.Written != "":
		a.printf("\nwrote %s\n", clean(r.Written))
	case !todo || write:
		a.println("\nthe configuration is up to date")
	default:
		a.println("\nadd to the configuration, or use --write:")
		for _, p := range r.Plugins {
			if p.State != pinSame {
				a.printf("  # %s\n  sha256: %q\n", p.Plugin, p.SHA256)
			}
		}
	}
}

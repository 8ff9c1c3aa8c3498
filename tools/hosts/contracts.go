package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	described "github.com/grapnelhq/grapnel/internal/agents"
	contract "github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/contracts"
)

// compareContracts compares the events of the newest packages with those that are mapped or omitted, and writes the list that was
// compared. An event without a fate is an error, and a fate without an event.
func (l *lab) compareContracts(ctx context.Context) error {
	list := filepath.Join(l.root, contracts.List)
	kept, err := contracts.Read(list)
	if err != nil {
		return err
	}
	var now []contracts.Contract
	for _, a := range described.All() {
		if a.Contract == nil {
			continue
		}
		c, err := l.fetchContract(ctx, filepath.Join(l.work, "contract-"+a.Name), a.Contract)
		if err != nil {
			return fmt.Errorf("%s: %s: %w", a.Name, a.Contract.Package, err)
		}
		c.Host = a.Name
		fmt.Printf("%s: %s %s has %d events\n", c.Host, c.Package, c.Version, len(c.Events))
		now = append(now, *c)
	}
	for _, c := range kept {
		if c.Package == "" {
			now = append(now, c)
		}
	}
	data, err := json.MarshalIndent(now, "", "  ")
	if err := errors.Join(err, contracts.Compare(now)); err != nil {
		return err
	}
	return os.WriteFile(list, append(data, '\n'), 0o644)
}

// fetchContract gets the newest version of a package, and reads its events.
func (l *lab) fetchContract(ctx context.Context, dir string, c *contract.Contract) (*contracts.Contract, error) {
	system := "-" + strings.NewReplacer("windows", "win32", "amd64", "x64").Replace(runtime.GOOS+"-"+runtime.GOARCH)
	pkg, suffix := c.Package, ""
	if c.PerSystem {
		pkg += system
	}
	if c.VersionPerSystem {
		suffix = system
	}
	version, err := newestVersion(ctx, pkg)
	if err != nil {
		return nil, err
	}
	if err := (&source{}).unpack(ctx, pkg+"@"+version+suffix, dir); err != nil {
		return nil, err
	}
	text, err := contractText(ctx, dir, c)
	if err != nil {
		return nil, err
	}
	names := contracts.Names(text, c)
	if len(names) == 0 {
		return nil, errors.New("no events were found: " + c.What + " looks different now")
	}
	return &contracts.Contract{Package: c.Package, Version: version, Source: c.What, Events: names}, nil
}

// contractText is the text in which the events stand. A program that prints it gets an empty home.
func contractText(ctx context.Context, dir string, c *contract.Contract) ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(dir, "package", filepath.FromSlash(c.Files)))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("the package has no %s", c.Files)
	}
	if err != nil {
		return nil, err
	}
	if c.Run != nil {
		cmd := exec.CommandContext(ctx, files[0], c.Run...)
		cmd.Dir, cmd.Env = dir, []string{"HOME=" + filepath.Join(dir, "home"), "PATH=" + os.Getenv("PATH")}
		out, err := cmd.Output()
		if err != nil || c.Out == "" {
			return out, err
		}
		files = []string{filepath.Join(dir, filepath.FromSlash(c.Out))}
	}
	var all bytes.Buffer
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		all.Write(append(data, '\n'))
	}
	return all.Bytes(), nil
}

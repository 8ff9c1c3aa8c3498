// Command contracts compares the events that agents have with those that are described here, mapped or omitted.
//
//	make contracts
//
// It fetches the newest packages of the agents from the npm registry into a temporary directory, reads the names of their
// hooks' events, and fails on one that is neither mapped nor omitted with a reason, and on one that is mapped and gone. If none
// is, it writes contracts.json, the list that was last compared: packages, versions and events. The package's test compares
// that list with the descriptions. Events of agents without a package are in the list by hand, with their source.
//
// It runs two of the fetched programs, which print their contracts (Codex and Amp), with an empty home directory.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"github.com/grapnelhq/grapnel/internal/agents"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
)

// list is where the contracts are kept, below the root of the repository.
const list = "internal/agents/contracts/contracts.json"

// Contract is the events of one package, or of a reference where there is none.
type Contract struct {
	Host    string   `json:"host"`
	Package string   `json:"package,omitempty"`
	Version string   `json:"version,omitempty"`
	Source  string   `json:"source"`
	Events  []string `json:"events"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "contracts:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	kept, err := readList(list)
	if err != nil {
		return fmt.Errorf("%w (run it in the root of the repository)", err)
	}
	dir, err := os.MkdirTemp("", "contracts-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is a copy
	var now []Contract
	for _, a := range agents.All() {
		if a.Contract == nil {
			continue
		}
		c, err := fetch(ctx, filepath.Join(dir, a.Name), a.Contract)
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
	if err := compare(now); err != nil {
		return err
	}
	data, err := json.MarshalIndent(now, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(list, append(data, '\n'), 0o644) //nolint:gosec // a file of the repository
}

func readList(path string) (all []Contract, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal(data, &all)
}

// compare returns an error for each event without a fate, and each fate without an event.
func compare(all []Contract) error {
	var errs []error
	for _, a := range agents.All() {
		fates, seen := agents.Fates(a), map[string]bool{}
		var from []string
		for _, c := range all {
			if c.Host != a.Name {
				continue
			}
			from = append(from, strings.TrimSpace(c.Package+" "+c.Version+" "+c.Source))
			for _, event := range c.Events {
				if _, known := fates[event]; !known {
					errs = append(errs, fmt.Errorf("%s: %s %s (%s) has the event %s: map it in the agent's package, or say there why it is omitted", a.Name, c.Package, c.Version, c.Source, event))
				}
				seen[event] = true
			}
		}
		for _, event := range slices.Sorted(maps.Keys(fates)) {
			if !seen[event] {
				errs = append(errs, fmt.Errorf("%s: the agent's package has the event %s, which is in none of: %s", a.Name, event, strings.Join(from, "; ")))
			}
		}
	}
	return errors.Join(errs...)
}

// system is this system as packages name it.
func system() string {
	return strings.NewReplacer("windows", "win32", "amd64", "x64").Replace(runtime.GOOS + "-" + runtime.GOARCH)
}

// fetch gets the newest version of a package, and reads its events.
func fetch(ctx context.Context, dir string, c *agent.Contract) (*Contract, error) {
	if err := os.MkdirAll(filepath.Join(dir, "home"), 0o700); err != nil {
		return nil, err
	}
	pkg, suffix := c.Package, ""
	if c.PerSystem {
		pkg += "-" + system()
	}
	if c.VersionPerSystem {
		suffix = "-" + system()
	}
	found, err := command(ctx, dir, "npm", "view", pkg, "version")
	if err != nil {
		return nil, err
	}
	version := strings.TrimSpace(string(found))
	packed, err := command(ctx, dir, "npm", "pack", "--silent", pkg+"@"+version+suffix)
	if err != nil {
		return nil, err
	}
	if _, err := command(ctx, dir, "tar", "-xzf", strings.TrimSpace(string(packed))); err != nil {
		return nil, err
	}
	text, err := read(ctx, dir, c)
	if err != nil {
		return nil, err
	}
	names := namesIn(text, c)
	if len(names) == 0 {
		return nil, errors.New("no events were found: " + c.What + " looks different now")
	}
	return &Contract{Package: c.Package, Version: version, Source: c.What, Events: names}, nil
}

// read is the text in which the events stand.
func read(ctx context.Context, dir string, c *agent.Contract) ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(dir, "package", filepath.FromSlash(c.Files)))
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("the package has no %s", c.Files)
	}
	if err != nil {
		return nil, err
	}
	if c.Run != nil {
		program, err := filepath.Abs(files[0])
		if err != nil {
			return nil, err
		}
		out, err := command(ctx, dir, program, c.Run...)
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

// command runs a program in a directory. A program of an agent gets a home of its own, npm the user's, with its cache.
func command(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // npm, tar, and what a vendor ships
	cmd.Dir = dir
	if filepath.IsAbs(name) {
		cmd.Env = []string{"HOME=" + filepath.Join(dir, "home"), "PATH=" + os.Getenv("PATH")}
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", filepath.Base(name), strings.Join(args, " "), err, errs.Bytes())
	}
	return out, nil
}

// namesIn are the names of the events in a contract's text, as hooks and payloads have them, sorted.
func namesIn(text []byte, c *agent.Contract) (names []string) {
	for _, from := range c.From {
		_, rest, found := bytes.Cut(text, []byte(from))
		if !found {
			return nil
		}
		text = rest
	}
	body, _, _ := bytes.Cut(text, []byte(c.To))
	for _, m := range regexp.MustCompile(c.Name).FindAllSubmatch(body, -1) {
		name := string(m[1])
		if renamed, ok := c.Renamed[name]; ok {
			name = renamed
		}
		if c.Upper {
			name = string(unicode.ToUpper(rune(name[0]))) + name[1:]
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Command contracts compares the events that agents have with those that package bridge maps or leaves out.
//
//	make contracts
//
// It fetches the newest packages of the agents from the npm registry into a temporary directory, reads the names of their
// hooks' events, and fails on one that is neither mapped nor left out with a reason, and on one that is mapped and gone. If
// none is, it writes contracts.json, the list that was last compared: packages, versions and events. The package's test
// compares that list with the tables. Events of agents without a package are in the list by hand, with their source.
//
// It runs two of the fetched programs, which print their contracts (Codex and Amp), with an empty home directory.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/grapnelhq/grapnel/bridge"
)

// list is where the contracts are kept, below the root of the repository.
const list = "internal/contracts/contracts.json"

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
	for i := range sources {
		c, err := sources[i].fetch(ctx, filepath.Join(dir, strconv.Itoa(i)))
		if err != nil {
			return fmt.Errorf("%s: %s: %w", sources[i].host, sources[i].pkg, err)
		}
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
	return writeList(list, now)
}

func readList(path string) (all []Contract, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal(data, &all)
}

func writeList(path string, all []Contract) error {
	data, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644) //nolint:gosec // a file of the repository
}

// compare returns an error for each event without a fate, and each fate without an event.
func compare(all []Contract) error {
	var errs []error
	byHost := map[string][]Contract{}
	for _, c := range all {
		byHost[c.Host] = append(byHost[c.Host], c)
	}
	for _, host := range bridge.Hosts() {
		fates, seen := bridge.Fates(host), map[string]bool{}
		var from []string
		for _, c := range byHost[host] {
			from = append(from, strings.TrimSpace(c.Package+" "+c.Version+" "+c.Source))
			for _, event := range c.Events {
				if _, known := fates[event]; !known {
					errs = append(errs, fmt.Errorf("%s: %s %s (%s) has the event %s: map it in package bridge, or say in fate.go why it is left out", host, c.Package, c.Version, c.Source, event))
				}
				seen[event] = true
			}
		}
		for _, event := range slices.Sorted(maps.Keys(fates)) {
			if !seen[event] {
				errs = append(errs, fmt.Errorf("%s: package bridge knows the event %s, which is in none of: %s", host, event, strings.Join(from, "; ")))
			}
		}
	}
	return errors.Join(errs...)
}

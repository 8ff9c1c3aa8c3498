// Package contracts has the list of the events of agents that was last compared with those that are described here, mapped or
// omitted: packages, versions and events. "make contracts" (tools/hosts) compares the newest packages and writes it. Events of
// agents without a package are in the list by hand, with their source.
package contracts

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/grapnelhq/grapnel/internal/agents"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
)

// List is where the contracts are kept, below the root of the repository.
const List = "internal/agents/contracts/contracts.json"

// Contract is the events of one package, or of a reference where there is none.
type Contract struct {
	Host    string   `json:"host"`
	Package string   `json:"package,omitempty"`
	Version string   `json:"version,omitempty"`
	Source  string   `json:"source"`
	Events  []string `json:"events"`
}

// Read reads a list.
func Read(path string) (all []Contract, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return all, json.Unmarshal(data, &all)
}

// Compare returns an error for each event without a fate, and each fate without an event.
func Compare(all []Contract) error {
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

// Names are the names of the events in a contract's text, as hooks and payloads have them, sorted.
func Names(text []byte, c *agent.Contract) (names []string) {
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

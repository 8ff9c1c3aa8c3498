package main

import (
	"os"
	"strings"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/internal/agents"
	"github.com/grapnelhq/grapnel/internal/agents/above"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/install"
	"github.com/grapnelhq/grapnel/internal/text/words"
)

// aboveHere finds what is above the hooks of an agent for this user, in the working directory.
func aboveHere(a *agent.Agent) []agent.Above {
	home, _ := os.UserHomeDir() // without one there are the project's and the system's files
	dir, _ := os.Getwd()
	return above.Find(a, home, dir, os.Getenv)
}

// aboveInstalled returns a function that finds what is above the hooks of the agents that have some of Grapnel's. It looks at
// most once a minute.
func aboveInstalled() func() map[string][]agent.Above {
	var mu sync.Mutex
	var at time.Time
	var found map[string][]agent.Above
	return func() map[string][]agent.Above {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(at) < time.Minute {
			return found
		}
		at, found = time.Now(), map[string][]agent.Above{}
		for _, host := range agents.All() {
			if hooks, _, err := installedHooks(&install.Host{Agent: host}, ""); len(hooks) > 0 || err != nil { // a plugin is no file of hooks
				found[host.Name] = aboveHere(host)
			}
		}
		return found
	}
}

func (a *app) printAbove(host string, rows []agent.Above) {
	printList(a, "above Grapnel's hooks in "+host, "what|id|last word|can|path", rows, func(r *agent.Above) cells {
		return cells{r.Kind, r.ID, words.If(r.Before, "yes"), strings.Join(r.Can, ", "), r.Path}
	})
}

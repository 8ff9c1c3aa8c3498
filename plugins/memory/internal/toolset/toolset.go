// Package toolset is what a model sees of the memory plugin's five tools: their definitions ([Definitions]), their
// arguments (the Parse functions) and their answers (the Answer functions).
//
// Errors are written for the model. No answer is longer than
// [MaxAnswer] characters: it would have fewer items instead.
//
// The first call of memory_forget with a query forgets nothing: it answers with what matches and a confirmation, a
// fingerprint of the workspace and of the ids that were shown ([Confirmation]). A second call with the same query and
// the confirmation looks again, and forgets if the same items match, also after a restart and on another machine.
package toolset

import (
	"cmp"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// The names of the tools.
const (
	Search   = "memory_search"
	List     = "memory_list"
	Get      = "memory_get"
	Remember = "memory_remember"
	Forget   = "memory_forget"
)

// Names returns the names of all tools.
func Names() []string { return []string{Search, List, Get, Remember, Forget} }

//go:embed schemas/*.json
var schemas embed.FS

// Definitions returns the tools that are allowed, as a model sees them. A tool is always the same bytes: tools are at the very
// beginning of what providers cache.
func Definitions(allowed func(tool string) bool) []phases.Tool {
	descriptions := map[string]string{
		Search: "Searches what is remembered from earlier conversations, and returns the memories that fit best. " +
			"Use it when the user refers to something that they said before.",
		List: "Lists what is remembered, the latest first, in pages. Use it when the user asks what you remember.",
		Get:  "Returns one memory whole, with what was said when it was stored.",
		Remember: "Stores one fact that will still matter in later conversations: a preference, a decision, something about the user or their work. " +
			"Use it when the user asks you to remember something. Never store passwords, keys or other secrets.",
		Forget: "Removes memories for good: by ids at once, or by a query in two calls, the second of which confirms what the first one found. " +
			"Use it only when the user asks you to forget something.",
	}
	var all []phases.Tool
	for _, name := range Names() {
		if allowed(name) {
			schema, _ := schemas.ReadFile("schemas/" + name + ".json") // each tool has one, as a test checks
			all = append(all, phases.Tool{Name: name, Description: descriptions[name], InputSchema: schema})
		}
	}
	return all
}

// Bounds of arguments.
const (
	maxArguments = 64 << 10 // bytes
	maxIDs       = 50

	defaultHits, maxHits = 8, 20
	defaultPage, maxPage = 20, 50
)

// SearchArguments are the arguments of memory_search.
type SearchArguments struct {
	Query string `json:"query"`
	Limit int    `json:"limit"`
}

// ParseSearch reads the arguments of memory_search, with the default limit.
func ParseSearch(data json.RawMessage) (SearchArguments, error) {
	a, err := Parse[SearchArguments](data)
	if a.Query = strings.TrimSpace(a.Query); a.Query == "" && err == nil {
		err = errors.New("query is missing")
	}
	return a, cmp.Or(err, limited(&a.Limit, defaultHits, maxHits))
}

// ListArguments are the arguments of memory_list.
type ListArguments struct {
	Scope    itemstore.Scope     `json:"scope"`
	Category turnpolicy.Category `json:"category"`
	Limit    int                 `json:"limit"`
	Cursor   string              `json:"cursor"`
}

// ParseList reads the arguments of memory_list, with the default limit.
func ParseList(data json.RawMessage) (ListArguments, error) {
	a, err := Parse[ListArguments](data)
	return a, cmp.Or(err, limited(&a.Limit, defaultPage, maxPage))
}

// GetArguments are the arguments of memory_get.
type GetArguments struct {
	ID string `json:"id"`
}

// RememberArguments are the arguments of memory_remember.
type RememberArguments struct {
	Text     string              `json:"text"`
	Category turnpolicy.Category `json:"category"` // empty is a fact
	Scope    itemstore.Scope     `json:"scope"`
	Replaces string              `json:"replaces"`
}

// ForgetArguments are the arguments of memory_forget: IDs, or Query, or Everything.
type ForgetArguments struct {
	IDs          []string        `json:"ids"`
	Query        string          `json:"query"`
	Everything   bool            `json:"everything"`
	Scope        itemstore.Scope `json:"scope"`
	Confirmation string          `json:"confirmation"`
}

// ParseForget reads the arguments of memory_forget.
func ParseForget(data json.RawMessage) (ForgetArguments, error) {
	a, err := Parse[ForgetArguments](data)
	a.Query = strings.TrimSpace(a.Query)
	ways := 0
	for _, given := range []bool{len(a.IDs) > 0, a.Query != "", a.Everything} {
		if given {
			ways++
		}
	}
	switch {
	case err != nil:
	case ways != 1:
		err = errors.New("give either ids, or a query, or everything: true")
	case len(a.IDs) > maxIDs:
		err = fmt.Errorf("%d ids; at most %d at a time", len(a.IDs), maxIDs)
	case a.Scope != "" && !a.Everything:
		err = errors.New("scope goes with everything: true")
	case a.Confirmation != "" && len(a.IDs) > 0:
		err = errors.New("ids need no confirmation")
	}
	return a, err
}

// Parse reads the arguments of a tool strictly. What they say is checked by the store.
func Parse[A any](data json.RawMessage) (args A, err error) {
	if len(data) > maxArguments {
		return args, fmt.Errorf("the arguments have more than %d bytes", maxArguments)
	}
	err = sdk.DecodeArguments(data, &args)
	return args, err
}

// limited fills in an omitted limit, and reports one out of bounds.
func limited(limit *int, standard, most int) error {
	if *limit = cmp.Or(*limit, standard); *limit < 0 || *limit > most {
		return fmt.Errorf("limit is %d and should be from 1 to %d", *limit, most)
	}
	return nil
}

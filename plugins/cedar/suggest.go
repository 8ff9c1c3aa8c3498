package cedar

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/cedar-policy/cedar-go/types"

	"github.com/grapnelhq/grapnel/phases"
)

// Bounds of a [Suggester]; what exceeds them is left out.
const (
	mostNames     = 10_000 // of each kind
	mostName      = 500    // bytes
	mostPairs     = 100_000
	mostSuggested = 10 // rules of each kind
)

// kinds are what rules are suggested about. The first three are of files, with all directories that they are in.
//
//nolint:gochecknoglobals // an immutable table
var kinds = []struct{ name, section, verb, rule string }{
	{"read", "Reads outside the project", "reads", `action == Action::"read", resource in File::%s) when { resource.outside }`},
	{"write", "Writes outside the project", "writes", `action == Action::"write", resource in File::%s) when { resource.outside }`},
	{"name", "Names outside the project, for an unknown use", "names", `action == Action::"name", resource in File::%s) when { resource.outside }`},
	{"host", "Hosts", "connects to", `action == Action::"connect", resource == Host::%s)`},
	{"program", "Programs that use the network", "runs", `action == Action::"run", resource) when { resource.program == %s }`},
	{"subcommand", "Programs that use the network", "runs", `action == Action::"run", resource) when { resource.program == %s && resource.subcommand == %s }`},
	{"secret", "Files with keys or passwords", "reads", `action in [Action::"read", Action::"name"], resource) when { resource.secret && resource.name == %s }`},
}

// networked are programs that use the network, with the subcommands that do; none stands for all.
//
//nolint:gochecknoglobals // an immutable table
var networked = map[string]string{
	"curl": "", "wget": "", "http": "", "https": "", "xh": "", "ssh": "", "scp": "", "sftp": "", "ftp": "", "telnet": "", "nc": "", "ncat": "", "socat": "", "gh": "", "glab": "", "npx": "",
	"git": "clone fetch pull push ls-remote", "npm": "install i ci add publish", "pnpm": "install i add publish dlx", "yarn": "install add publish dlx", "pip": "install download",
	"pip3": "install download", "uv": "sync add", "go": "get install", "cargo": "install add fetch publish", "gem": "install push", "bundle": "install", "composer": "install require",
	"brew": "install update upgrade", "apt": "install update", "apt-get": "install update", "docker": "pull push login", "podman": "pull push login",
}

// Suggester collects what calls do that rules may be about. Its memory does not grow with the calls. It is safe for
// concurrent use.
type Suggester struct {
	hides    func(string) bool
	mu       sync.Mutex
	used     map[string]map[string]*usage // by kind and name
	pairs    map[pair]bool
	calls    int
	unparsed int
	leftOut  int
}

// usage counts the calls with a name, of which last is the last. narrower is how many of them had one thing below it.
type usage struct {
	Suggestion

	last, narrower int
}

type pair struct {
	of      *usage
	session string
}

// Suggestion is a rule, with the calls that it would have denied.
type Suggestion struct {
	Section  string `json:"section"  jsonschema:"what it is about"`
	Rule     string `json:"rule"     jsonschema:"in Cedar, on one line"`
	Calls    int    `json:"calls"`
	Sessions int    `json:"sessions" jsonschema:"how many had such a call; of very many not all are counted"`
	Example  string `json:"example"  jsonschema:"one of the calls; secrets are hidden"`
}

// Suggestions are rules about what calls did most.
type Suggestions struct {
	Rules    []Suggestion `json:"rules"    jsonschema:"at most ten of each kind, the most frequent first"`
	Unparsed int          `json:"unparsed" jsonschema:"calls of which a part could not be read"`
	LeftOut  int          `json:"left_out" jsonschema:"names of files and hosts that were not counted: too many, too long, or secrets themselves"`
}

// NewSuggester returns one that shows no name of which hides says that it has a secret.
func NewSuggester(hides func(name string) bool) *Suggester {
	s := &Suggester{hides: hides, used: map[string]map[string]*usage{}, pairs: map[pair]bool{}}
	for _, k := range kinds {
		s.used[k.name] = map[string]*usage{}
	}
	return s
}

// Add adds a call. example returns it on one line, without secrets.
func (s *Suggester) Add(f *phases.Facts, session string, example func() string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if f.Unparsed {
		s.unparsed++
	}
	add := func(kind, name string) { s.add(kind, name, session, example) }
	sc := &scene{facts: f}
	for i, files := range [][]string{sc.reads(), f.Writes, f.Names} {
		for _, path := range files {
			secret := func(secret string) bool { return within(secret, path) }
			if kinds[i].name != "write" && slices.ContainsFunc(f.Secrets, secret) {
				add("secret", filepath.Base(path))
			}
			for more := slices.Contains(f.Outside, path); more; path = filepath.Dir(path) {
				add(kinds[i].name, path)
				more = path != filepath.Dir(path)
			}
		}
	}
	for _, host := range f.Hosts {
		add("host", host)
	}
	for i := range f.Commands {
		c := &f.Commands[i]
		if which, known := networked[c.Program]; known && which == "" {
			add("program", c.Program)
		} else if sub := subcommand(c); slices.Contains(strings.Fields(which), sub) {
			add("subcommand", c.Program+" "+sub)
		}
	}
}

func (s *Suggester) add(kind, name, session string, example func() string) {
	u := s.used[kind][name]
	if u == nil {
		if len(name) > mostName || len(s.used[kind]) == mostNames || s.hides(name) {
			s.leftOut++
			return
		}
		u = &usage{Suggestion: Suggestion{Example: example()}}
		s.used[kind][name] = u
	}
	if u.last == s.calls {
		return
	}
	u.last = s.calls
	u.Calls++
	if p := (pair{u, session}); !s.pairs[p] && len(s.pairs) < mostPairs {
		s.pairs[p] = true
		u.Sessions++
	}
}

// Suggestions returns the rules about what was added, without directories in which only one thing was used.
func (s *Suggester) Suggestions() Suggestions {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := Suggestions{[]Suggestion{}, s.unparsed, s.leftOut}
	for _, k := range kinds {
		for name, u := range s.used[k.name] {
			if dir := s.used[k.name][filepath.Dir(name)]; dir != nil && dir != u {
				dir.narrower = max(dir.narrower, u.Calls)
			}
		}
		var list []Suggestion
		for name, u := range s.used[k.name] {
			if u.narrower < u.Calls {
				list = append(list, Suggestion{k.section, suggested(k.verb, k.rule, name), u.Calls, u.Sessions, u.Example})
			}
		}
		slices.SortFunc(list, func(a, b Suggestion) int { return cmp.Or(b.Calls-a.Calls, strings.Compare(a.Rule, b.Rule)) })
		all.Rules = append(all.Rules, list[:min(len(list), mostSuggested)]...)
	}
	return all
}

// suggested is a rule on one line. A program's subcommand is a name of its own.
func suggested(verb, rule, name string) string {
	literal := func(s string) string { return string(types.String(s).MarshalCedar()) }
	names := []any{literal(name)}
	if strings.Count(rule, "%s") == 2 {
		program, sub, _ := strings.Cut(name, " ")
		names = []any{literal(program), literal(sub)}
	}
	return fmt.Sprintf("@id(%s) forbid (principal, ", literal(verb+" "+name)) + fmt.Sprintf(rule, names...) + ";"
}

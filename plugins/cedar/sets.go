package cedar

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/grapnelhq/grapnel/internal/facts"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
	"github.com/grapnelhq/grapnel/phases"
)

// sets are rules ready to use, each with its cases.
//
//go:embed rules
var sets embed.FS

// Sets are the names of the sets of rules that come along.
func Sets() []string { return []string{"secrets", "destructive", "network", "outside-project"} }

// Set returns the rules of a set and its cases; ok is false for an unknown name.
func Set(name string) (rules, cases string, ok bool) {
	data, err := sets.ReadFile("rules/" + name + ".cedar")
	if err != nil {
		return "", "", false
	}
	tests, err := sets.ReadFile("rules/" + name + ".cases")
	return string(data), string(tests), err == nil
}

// Report is what [Check] has found.
type Report struct {
	Rules    int       `json:"rules"`
	Cases    int       `json:"cases"`
	Problems []Problem `json:"problems"`
}

// The place that cases happen in.
const (
	caseDir  = "/home/me/project"
	caseHome = "/home/me"
)

// oneCase is a verdict, a tool and its arguments.
var oneCase = lazyregexp.New(`^(deny|ask|ok)\s+(\S+)\s+(.+)$`)

// Check parses rules, compares them with the model, says which can never match, and runs cases: lines of a verdict (deny, ask or ok), a tool, and its
// arguments: JSON, or the text of the one that matters. The working directory is /home/me/project. name is the file's.
func Check(ctx context.Context, name, rules, cases string) Report {
	parsed, problems := parse(name, rules)
	r := Report{Rules: len(parsed), Problems: append([]Problem{}, problems...)}
	if len(problems) > 0 {
		return r
	}
	set := newRuleset(parsed)
	r.Problems = append(r.Problems, set.idle()...)
	file := strings.TrimSuffix(name, filepath.Ext(name)) + ".cases"
	for i, line := range strings.Split(cases, "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		r.Cases++
		words := oneCase().FindStringSubmatch(line)
		if words == nil {
			r.Problems = append(r.Problems, Problem{file, i + 1, 1, "a case is a verdict (deny, ask or ok), a tool, and its arguments"})
			continue
		}
		want, tool, argument := words[1], words[2], words[3]
		if verdict, reason := set.try(ctx, tool, argument); verdict != want {
			r.Problems = append(r.Problems, Problem{file, i + 1, 1, fmt.Sprintf("want %s, is %s: %s %s%s", want, verdict, tool, argument, reason)})
		}
	}
	return r
}

// try judges a made-up call, and says why.
func (s *ruleset) try(ctx context.Context, tool, argument string) (verdict, reason string) {
	arguments := json.RawMessage(argument)
	if !strings.HasPrefix(argument, "{") {
		name := cmp.Or(map[string]string{"Bash": "command", "WebFetch": "url"}[tool], "file_path")
		arguments, _ = json.Marshal(map[string]string{name: argument}) //nolint:errchkjson // texts always encode
	}
	in := &phases.ToolPreCallInput{Tool: tool, Arguments: arguments}
	d := &phases.Dispatch{Context: phases.Context{Dir: caseDir}}
	decision, err := s.judge(ctx, newCall(d, in, facts.Of(tool, arguments, nil, caseDir, caseHome)), false)
	switch {
	case err != nil:
		return "error", " — because " + err.Error()
	case decision == nil:
		return "ok", ""
	}
	return string(decision.Verdict), " — because " + decision.Reason
}

package cedar

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/facts"
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
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		r.Cases++
		if len(fields) < 3 || !slices.Contains([]string{"deny", "ask", "ok"}, fields[0]) {
			r.Problems = append(r.Problems, Problem{file, i + 1, 1, "a case is a verdict (deny, ask or ok), a tool, and its arguments"})
			continue
		}
		_, rest, _ := strings.Cut(strings.TrimSpace(line), fields[0])
		_, rest, _ = strings.Cut(rest, fields[1])
		rest = strings.TrimSpace(rest)
		verdict, reason := set.try(ctx, fields[1], rest)
		if reason != "" {
			reason = " — because " + reason
		}
		if verdict != fields[0] {
			r.Problems = append(r.Problems, Problem{file, i + 1, 1, fmt.Sprintf("want %s, is %s: %s %s%s", fields[0], verdict, fields[1], rest, reason)})
		}
	}
	return r
}

// try judges a made-up call.
func (s *ruleset) try(ctx context.Context, tool, argument string) (verdict, reason string) {
	arguments := json.RawMessage(argument)
	if !strings.HasPrefix(argument, "{") {
		name := "file_path"
		switch tool {
		case "Bash":
			name = "command"
		case "WebFetch":
			name = "url"
		}
		arguments, _ = json.Marshal(map[string]string{name: argument}) //nolint:errchkjson // texts always encode
	}
	in := &phases.ToolPreCallInput{Tool: tool, Arguments: arguments}
	d := &phases.Dispatch{Context: phases.Context{Dir: caseDir}}
	decision, err := s.judge(ctx, newCall(d, in, facts.Of(tool, arguments, nil, caseDir, caseHome)), false)
	switch {
	case err != nil:
		return "error", err.Error()
	case decision == nil:
		return "ok", ""
	}
	return string(decision.Verdict), decision.Reason
}

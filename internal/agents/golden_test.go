package agents_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/grapnelhq/grapnel/internal/agents"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/phases"
)

var update = flag.Bool("update", false, "write what came out into testdata")

// outcomes are what each event is answered with; those that no bridge has for it are left out by applies.
func outcomes() map[string]agent.Outcome {
	return map[string]agent.Outcome{
		"nothing": {},
		"deny":    {Verdict: phases.VerdictDeny, Reason: "no <shell> here"},
		"ask":     {Verdict: phases.VerdictAsk, Reason: "really?"},
		"rewrite": {Arguments: json.RawMessage(`{"command":"ls -l"}`)},
		"result":  {Result: new("***")},
		"context": {Context: "Be kind."},
	}
}

// applies reports whether a bridge answers an event of the step with the outcome.
func applies(step agent.Step, name string) bool {
	switch step {
	case agent.StepToolCall, agent.StepPermission:
		return name != "result"
	case agent.StepToolResult:
		return name == "nothing" || name == "result" || name == "context"
	case agent.StepPrompt, agent.StepSubagent:
		return name == "nothing" || name == "deny" || name == "context"
	case agent.StepStop, agent.StepConfig:
		return name == "nothing" || name == "deny"
	default:
		return name == "nothing"
	}
}

// TestGolden runs the archives of HOST/testdata/EVENT.txtar. The comment of each names its contract; payload.json is what
// the host sends, and fields are the members that an answer may have there, by path, with the type of their values; the
// other files are what the payload is to Grapnel, and the answer for each outcome.
func TestGolden(t *testing.T) {
	t.Parallel()

	for _, file := range archives(t) {
		host := hostOf(file)
		t.Run(host+"/"+strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			t.Parallel()

			ar, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(ar.Files) < 2 || ar.Files[0].Name != "payload.json" || ar.Files[1].Name != "fields" || len(ar.Comment) == 0 {
				t.Fatal("an archive names its contract, and has payload.json and fields first")
			}
			got := goldenFiles(t, host, ar)
			if *update {
				ar.Files = got
				if err := os.WriteFile(file, txtar.Format(ar), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(txtar.Format(&txtar.Archive{Files: got})), string(txtar.Format(&txtar.Archive{Files: ar.Files}))); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
	for _, a := range agents.All() {
		for name, m := range a.Events {
			if _, err := os.Stat(filepath.Join(strings.ReplaceAll(a.Name, "-", ""), "testdata", name+".txtar")); err != nil && m.Step != agent.StepNone {
				t.Error(err) // no event is mapped without an archive
			}
		}
	}
}

func archives(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("*", "testdata", "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	return files
}

// hostOf is the agent of an archive.
func hostOf(file string) string {
	dir, _, _ := strings.Cut(filepath.ToSlash(file), "/")
	return strings.Replace(dir, "claudecode", "claude-code", 1)
}

func goldenFiles(t *testing.T, host string, ar *txtar.Archive) []txtar.File {
	t.Helper()
	e, err := agents.Decode(host, ar.Files[0].Data)
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]string{}
	for line := range strings.Lines(string(ar.Files[1].Data)) {
		path, kind, _ := strings.Cut(strings.TrimSpace(line), " ")
		allowed[path] = kind
	}
	files := slices.Concat(ar.Files[:2], []txtar.File{{Name: "event", Data: eventLines(t, &e)}})
	all := outcomes()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !applies(e.Step, name) {
			continue
		}
		answer := agents.Encode(&e, new(all[name]))
		if len(answer) > 0 {
			checkAnswer(t, name, answer, allowed)
		}
		files = append(files, txtar.File{Name: name, Data: answer})
	}
	return files
}

// eventLines are the fields of an event that are set.
func eventLines(t *testing.T, e *agent.Event) []byte {
	t.Helper()
	encoded, err := json.Marshal(e) //nolint:musttag // its fields are its names
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(encoded, &fields); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if v := string(fields[name]); v != `""` && v != "null" && v != "false" && v != "0" && !strings.HasSuffix(v, `{"tool":""}`) && v != "{}" {
			fmt.Fprintf(&b, "%s %s\n", name, v)
		}
	}
	return b.Bytes()
}

// checkAnswer makes sure that an answer has no member that the host's contract lacks, and none of another type.
func checkAnswer(t *testing.T, name string, answer []byte, allowed map[string]string) {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(answer, &v); err != nil {
		t.Fatalf("%s: %s: %v", name, answer, err)
	}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		kind, ok := allowed[path]
		switch v := v.(type) {
		case map[string]any:
			if ok && kind == "object" {
				return
			}
			for member, value := range v {
				walk(strings.TrimPrefix(path+"."+member, "."), value)
			}
			return
		case string:
			ok = ok && (kind == "string" || slices.Contains(strings.Split(kind, "|"), v))
		case bool:
			ok = ok && kind == "boolean"
		}
		if !ok {
			t.Errorf("%s: %s is %v, which the contract has as %q", name, path, v, kind)
		}
	}
	walk("", v)
}

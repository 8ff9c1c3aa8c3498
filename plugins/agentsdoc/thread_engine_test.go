package agentsdoc_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/thread"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc"
	"github.com/grapnelhq/grapnel/runtime"
)

// treeGrants are what an operator allows the plugin who has documents too.
const treeGrants = `
    grants:
      contribute: [prompt_section, reminder]
      sections: [agents_md]
      domains: [thread_agents_doc]
      host: [documents, state]
      see: [touched_paths, state]
      read: ['*']
`

// documents are host services with one that answers for each thread alike.
func documents(call func(ctx context.Context) (string, error)) map[string]runtime.Service {
	return map[string]runtime.Service{"documents": {"resolve_for_thread": {
		Call: func(ctx context.Context, _ runtime.Caller, _ json.RawMessage) (json.RawMessage, error) {
			answer, err := call(ctx)
			return json.RawMessage(answer), err
		},
	}}}
}

// holding are documents that are always one at the root, with what text holds.
func holding(text *string) map[string]runtime.Service {
	return documents(func(context.Context) (string, error) {
		data, err := json.Marshal(map[string]any{
			"effective": map[string]any{"doc": map[string]any{"id": "01J", "content": *text}, "source_path": []string{}}, "diagnostics": []any{},
		})
		return string(data), err
	})
}

// declared is a configuration with the plugin alone. Head stands before the
// plugins, rest below the plugin.
func declared(head, grants, settings, rest string) string {
	return "version: 1\n" + head + "plugins:\n  - name: agentsdoc\n    builtin: agentsdoc" + grants + "    config: " + settings + "\n" + rest
}

// withDocuments is an engine with the plugin inside of it, and documents.
func withDocuments(tb testing.TB, text string, o runtime.Options) *runtime.Engine {
	tb.Helper()
	o.InProcess = map[string]runtime.Plugin{"agentsdoc": agentsdoc.New()}
	return started(tb, text, o)
}

// compileIn is the prompt of a turn.
func compileIn(tb testing.TB, eng *runtime.Engine, where phases.Context) (*runtime.Compiled, error) {
	tb.Helper()
	if where.TurnID == "" {
		where.TurnID = "turn"
	}
	return eng.CompileTurn(tb.Context(), where, runtime.CompileInput{})
}

// agentsText is the section's text in a system prompt; empty where there is none.
func agentsText(done *runtime.Compiled) string {
	text, _, _ := strings.Cut(section(done), "\n\n## ") // what follows in the prompt
	return text
}

// TestFilesBeforeDocuments: files come first, and keep every character as long as
// there is any of a document.
func TestFilesBeforeDocuments(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, head, rest, settings string
		limit                      int // of the section
	}{
		{"defaults", "", "", "", 48_000},
		{"20,000 for each", "", "    subscriptions:\n      agentsdoc.prompt: {budget: {chars: 20000}}\n      agentsdoc.thread_prompt: {budget: {chars: 20000}}\n", "", 40_000},
		{"little in total", "budgets: {turn: {chars: 4000}}\n", "", "", 4000},
		{"hardly anything in total", "budgets: {turn: {chars: 900}}\n", "", "", 900},
		{"less for files", "", "    subscriptions:\n      agentsdoc.prompt: {budget: {chars: 3000}}\n", "", 20_000},
		{"documents planned first", "", "    subscriptions:\n      agentsdoc.prompt: {after: [agentsdoc.thread_prompt]}\n", "", 48_000},
		{"a message", "", "", ", preset: codex", 64_000},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text := ""
			eng := withDocuments(t, declared(tt.head, treeGrants, "{source: both, global: false"+tt.settings+"}", tt.rest), runtime.Options{Services: holding(&text)})
			both, cut := 0, 0
			for _, files := range []int{0, 1, 40, 250, 600, 1600, 2500} { // lines of ten
				base := build(t, map[string]string{"r/.git/HEAD": ""})
				if files > 0 {
					write(t, base+"/r/AGENTS.md", strings.Repeat("a file...\n", files))
				}
				where := phases.Context{WorkspaceID: "w", ThreadID: "t", Dir: base + "/r"}
				text = ""
				want := texts(t, eng, where)
				for _, size := range []int{1, 30, 300, 390, 1200, 6000} {
					text = strings.Repeat("a thread.\n", size)
					rest := behindFiles(t, want, texts(t, eng, where), tt.limit)
					if t.Failed() {
						t.Fatalf("%d lines of files, %d of the document", files, size)
					}
					if rest != "" {
						both++
					}
					if strings.Contains(rest, "[truncated: ") {
						cut++
					}
				}
			}
			if both == 0 || cut == 0 {
				t.Errorf("%d prompts with both, %d cut: the test sees too little", both, cut)
			}
		})
	}
}

// behindFiles checks a section of both sources against that of the files alone, and
// returns what there is of the document.
func behindFiles(tb testing.TB, alone, both delivered, limit int) string {
	tb.Helper()
	rest, ok := strings.CutPrefix(both.text, alone.text)
	if !ok {
		tb.Errorf("the files lose something:\n%.300q\n%.300q", alone.text, both.text)
		return ""
	}
	if n := utf8.RuneCountInString(both.text); n > limit+len("\n\n") { // what joins them is in no budget
		tb.Errorf("%d characters, %d are allowed", n, limit)
	}
	if rest == "" {
		return ""
	}
	if alone.cutByHost {
		tb.Errorf("files are cut by the limit %s, and of the document there is %.80q", alone.limit, rest)
	}
	doc, joined := strings.CutPrefix(rest, "\n\n")
	if joined != (alone.text != "") || !strings.HasPrefix(doc, thread.FrameOpen+"\na") || !strings.HasSuffix(doc, "\n"+thread.FrameClose) {
		tb.Errorf("the document's part is\n%.400q", rest)
	}
	return rest
}

// delivered is what came of the section.
type delivered struct {
	text      string
	cutByHost bool
	limit     phases.Limit
}

// texts is the section of a prompt, wherever it stands.
func texts(tb testing.TB, eng *runtime.Engine, where phases.Context) delivered {
	tb.Helper()
	done, err := compileIn(tb, eng, where)
	if err != nil {
		tb.Fatal(err)
	}
	out := delivered{text: agentsText(done)}
	for _, m := range done.Prompt.UserMessages {
		out.text += m.Text
	}
	for _, s := range done.Manifest.Sections {
		if s.SectionID == "agents_md" && s.Truncation != nil {
			out.limit = s.Truncation.Limit
			out.cutByHost = out.limit != phases.LimitPlugin
		}
	}
	return out
}

// TestDocumentsFailClosed: a turn without an answer does not come about, and takes
// no longer than it may.
func TestDocumentsFailClosed(t *testing.T) {
	t.Parallel()
	fails := func(err error) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return "", err }
	}
	away, there := fails(phases.Errorf(phases.CauseUnavailable, "documents are out of reach")), phases.Context{WorkspaceID: "w", ThreadID: "t"}
	tests := []struct {
		name  string
		where phases.Context
		call  func(ctx context.Context) (string, error)
		cause phases.Cause
		code  string
	}{
		{"no thread", phases.Context{WorkspaceID: "w"}, away, phases.CausePluginError, "context_incomplete"},
		{"no workspace", phases.Context{ThreadID: "t"}, away, phases.CausePluginError, "context_incomplete"},
		{"out of reach", there, away, phases.CausePluginError, "documents_unavailable"},
		{"grant taken away", there, fails(phases.Errorf(phases.CauseForbidden, "no")), phases.CausePluginError, "documents_not_granted"},
		{"broken", there, fails(errors.New("no")), phases.CausePluginError, "documents_failed"},
		{"no answer", there, func(context.Context) (string, error) { return `{}`, nil }, phases.CausePluginError, "documents_invalid"},
		{"hangs", there, func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}, phases.CauseTimeout, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			eng := withDocuments(t, declared("", treeGrants, "{source: tree}", "    subscriptions:\n      agentsdoc.thread_prompt: {timeout: 100ms}\n"),
				runtime.Options{Services: documents(tt.call)})
			done, err := compileIn(t, eng, tt.where)
			coded, ok := errors.AsType[*phases.Error](err)
			if !ok || coded.Code != tt.cause || coded.PluginCode != tt.code || coded.Subscription != "agentsdoc.thread_prompt" {
				t.Errorf("error is %+v", err)
			}
			if done != nil && done.Prompt != nil {
				t.Error("there is a prompt")
			}
		})
	}
}

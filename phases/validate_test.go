package phases_test

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/phases"
)

// mentions asserts that a message has all parts; without parts, that there is
// no error.
func mentions(t *testing.T, err error, parts ...string) {
	t.Helper()
	if len(parts) == 0 {
		if err != nil {
			t.Errorf("unexpected: %v", err)
		}
		return
	}
	if err == nil {
		t.Errorf("no error; want %q", parts)
		return
	}
	for _, part := range parts {
		if !strings.Contains(phases.Whole(err), part) {
			t.Errorf("%q does not say %q", phases.Whole(err), part)
		}
	}
}

func TestValidPluginName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"agentsdoc": true, "a-b_c": true, "": false, "_a": false, "a.b": false, "a/b": false, "a:b": false} {
		if phases.ValidPluginName(name) != want {
			t.Errorf("%q may name a plugin: %t", name, !want)
		}
	}
}

func TestValidateDescription(t *testing.T) {
	t.Parallel()
	valid := func() *phases.Description {
		return &phases.Description{
			Name: "p", Version: "1", Hooks: []phases.Hook{{Name: "h", Phase: phases.PrePromptCompile}, {Name: "i", Phase: phases.PostTurn}},
			Tools: []phases.Tool{{Name: "t", InputSchema: json.RawMessage(`{"type":"object"}`)}}, ConfigSchema: json.RawMessage(" {}"),
		}
	}
	deep := json.RawMessage(strings.Repeat(`{"a":`, 33) + "1" + strings.Repeat("}", 33))
	tests := []struct {
		name   string
		change func(*phases.Description)
		want   []string
	}{
		{"valid", func(*phases.Description) {}, nil},
		{"name", func(d *phases.Description) { d.Name = "a.b" }, []string{`plugin "a.b": name "a.b"`}},
		{"version", func(d *phases.Description) { d.Version = "" }, []string{`plugin "p": no version`}},
		{"hook name", func(d *phases.Description) { d.Hooks[1].Name = "a b" }, []string{`hooks[1] (a b): name "a b"`}},
		{"hook twice", func(d *phases.Description) { d.Hooks[1].Name = "h" }, []string{`hooks[1] (h): hook "h" is registered twice, first as hooks[0]`}},
		{"too many hooks", func(d *phases.Description) { d.Hooks = make([]phases.Hook, 257) }, []string{"257 hooks and 1 tools; at most 256 and 256"}},
		{"too many tools", func(d *phases.Description) { d.Tools = make([]phases.Tool, 257) }, []string{"2 hooks and 257 tools"}},
		{"tool name", func(d *phases.Description) { d.Tools[0].Name = "" }, []string{`tools[0]: name ""`}},
		{"tool twice", func(d *phases.Description) { d.Tools = append(d.Tools, d.Tools[0]) }, []string{`tools[1]: "t" is there twice, first as tools[0]`}},
		{"hidden domain", func(d *phases.Description) { d.Tools[0].HiddenDomain = "mail\n- files" }, []string{`tools[0] (t): hidden_domain "mail\n- files": use letters`}},
		{"tool schema", func(d *phases.Description) { d.Tools[0].InputSchema = json.RawMessage(`true`) }, []string{"tools[0] (t): input_schema: is not a JSON object"}},
		{"schema", func(d *phases.Description) { d.ConfigSchema = json.RawMessage(`{`) }, []string{"config_schema: is not valid JSON"}},
		{"deep schema", func(d *phases.Description) { d.ConfigSchema = deep }, []string{"config_schema: is JSON nested deeper than 32"}},
		{"all at once", func(d *phases.Description) {
			d.Version, d.Hooks[0].Timeout, d.ConfigSchema = "", -1, json.RawMessage(`1`)
		}, []string{"no version", "hooks[0] (h): timeout", "config_schema"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := valid()
			tt.change(d)
			mentions(t, phases.ValidateDescription(d, phases.Standard()), tt.want...)
		})
	}
}

func TestValidateHook(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		hook phases.Hook
		want []string
	}{
		{"valid", phases.Hook{Name: "h", Phase: phases.ToolPreCall, Role: phases.RoleValidate, Kinds: []phases.Kind{phases.KindDecision, phases.KindAudit}}, nil},
		{"no phase", phases.Hook{Name: "h"}, []string{`unknown phase ""`}},
		{"unknown phase", phases.Hook{Name: "h", Phase: "tool.precall"}, []string{`did you mean "tool.pre_call"?`}},
		{"unknown role", phases.Hook{Name: "h", Phase: phases.ToolPreCall, Role: "validator"}, []string{`unknown role "validator" (did you mean "validate"?)`}},
		{"unknown kind", phases.Hook{Name: "h", Phase: phases.ToolPreCall, Kinds: []phases.Kind{"decisions"}}, []string{`unknown kind "decisions" (did you mean "decision"?)`}},
		{"kind of another phase", phases.Hook{Name: "h", Phase: phases.ToolPreCall, Kinds: []phases.Kind{phases.KindPolicy}}, []string{"phase tool.pre_call does not take policy"}},
		{"timeout", phases.Hook{Name: "h", Phase: phases.ToolPreCall, Timeout: -1}, []string{"timeout -1ns"}},
		{"characters", phases.Hook{Name: "h", Phase: phases.ToolPreCall, Budget: phases.TextBudget{Chars: -1}}, []string{"budget: must not be negative"}},
		{"failure policy", phases.Hook{Name: "h", Phase: phases.ToolPreCall, OnFailure: phases.OnFailure{Default: "closed"}}, []string{`on_failure: unknown failure policy "closed"`}},
		{"fallback without contributions", phases.Hook{Name: "h", Phase: phases.ToolPreCall, OnFailure: phases.OnFailure{Default: phases.UseInstead}}, []string{"there are no fallback contributions"}},
		{
			"fallback for one cause",
			phases.Hook{Name: "h", Phase: phases.ToolPreCall, OnFailure: phases.OnFailure{ByCause: map[phases.Cause]phases.FailureWord{phases.CauseCrash: phases.UseInstead}}},
			[]string{"there are no fallback contributions"},
		},
		{
			"fallbacks",
			phases.Hook{Name: "h", Phase: phases.ToolPreCall, Kinds: []phases.Kind{phases.KindDecision}, Fallback: phases.Contributions{
				&phases.Decision{Verdict: "allow"}, nil, &phases.Reminder{Type: "t"}, &phases.Decision{Verdict: "perhaps"}, &phases.Noop{},
			}},
			[]string{"fallback[1]: empty", "fallback[2]: kind reminder is not among the hook's kinds", "fallback[3]: decision: verdict"},
		},
		{"retry", phases.Hook{Name: "h", Phase: phases.ToolPreCall, Retry: &phases.Retry{Attempts: 2}}, []string{"only hooks that declare themselves idempotent"}},
		{"no retry", phases.Hook{Name: "h", Phase: phases.ToolPreCall, Retry: &phases.Retry{Attempts: 1, Backoff: -1}}, nil},
		{"many retries", phases.Hook{Name: "h", Phase: phases.ToolPreCall, Idempotent: true, Retry: &phases.Retry{Attempts: 11}}, []string{"at most 10 attempts"}},
		{"negative backoff", phases.Hook{Name: "h", Phase: phases.ToolPreCall, Idempotent: true, Retry: &phases.Retry{Attempts: 2, Backoff: -1}}, []string{"no negative backoff"}},
		{"cache", phases.Hook{Name: "h", Phase: phases.PrePromptCompile, Cache: &phases.Cache{TTL: 1, Vary: []string{"dir", "input.tool_calling"}}}, nil},
		{"cache of a decision", phases.Hook{Name: "h", Phase: phases.ToolPreCall, Cache: &phases.Cache{}}, []string{"phases that take decisions are never cached"}},
		{"cache of an observer", phases.Hook{Name: "h", Phase: phases.PrePromptCompile, Role: phases.RoleObserve, Cache: &phases.Cache{}}, []string{"never cached"}},
		{"life of a cache", phases.Hook{Name: "h", Phase: phases.PrePromptCompile, Cache: &phases.Cache{TTL: -1}}, []string{"ttl must not be negative"}},
		{"vary by nothing known", phases.Hook{Name: "h", Phase: phases.PrePromptCompile, Cache: &phases.Cache{Vary: []string{"dirs"}}}, []string{`vary "dirs"`, `did you mean "dir"?`}},
		{"vary by a host's own input", phases.Hook{Name: "h", Phase: "x.acme.idle", Cache: &phases.Cache{Vary: []string{"input.whatever"}}}, nil},
		{"visibility", phases.Hook{Name: "h", Phase: phases.ToolPreCall, Visibility: "user"}, []string{`unknown visibility "user"`}},
	}
	table, err := phases.NewTable(phases.Custom("x.acme.idle", "", 0, phases.KindReminder))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			mentions(t, errors.Join(phases.ValidateHook(&tt.hook, table)...), tt.want...)
		})
	}
}

// TestLongLists: a list of a description that is too long is one mistake, however many
// there are in it, and a long name is not repeated whole.
func TestLongLists(t *testing.T) {
	t.Parallel()

	many, long := make([]string, 100_000), strings.Repeat("n", 1<<20)
	for i := range many {
		many[i] = "prompt_context" // near enough to be searched for
	}
	kinds := make([]phases.Kind, len(many))
	for name, hook := range map[string]phases.Hook{
		"after":      {After: many},
		"before":     {Before: many},
		"kinds":      {Kinds: kinds},
		"needs":      {Needs: many},
		"cache.vary": {Cache: &phases.Cache{Vary: many}},
		"cache.tags": {Cache: &phases.Cache{Tags: many}},
		"fallback":   {Fallback: make(phases.Contributions, len(many))},
	} {
		hook.Name, hook.Phase = "h", phases.PrePromptCompile
		err := phases.ValidateDescription(&phases.Description{Name: "p", Version: "1", Hooks: []phases.Hook{hook}}, phases.Standard())
		if want := name + ": 100000 entries; at most 256"; err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 200 {
			t.Errorf("%s: %.300v", name, err)
		}
	}
	hooks := slices.Repeat([]phases.Hook{{Name: long, Phase: phases.Phase(long)}}, 10)
	err := phases.ValidateDescription(&phases.Description{Name: long, Version: long, Hooks: hooks}, phases.Standard())
	if err == nil || len(err.Error()) > 20_000 {
		t.Errorf("an error of %d bytes", len(err.Error()))
	}
	refs := slices.Repeat([]phases.SourceRef{{Kind: "file"}}, 257)
	row, _ := phases.Standard().Lookup(phases.PrePromptCompile)
	if err := phases.ValidateContribution(&phases.PromptSection{SectionID: "s", SourceRefs: refs}, row); phases.CodeOf(err) != phases.CauseInvalidReply {
		t.Errorf("257 sources: %v", err)
	}
}

// TestLongWords: what a plugin says of a failure is cut where it leaves the engine.
func TestLongWords(t *testing.T) {
	t.Parallel()

	err := phases.WithDetail("failed", strings.Repeat("ä", 1<<20), nil)
	if words := phases.DetailOf(err); len(words) > 9<<10 || !utf8.ValidString(words) || !strings.HasSuffix(words, "ä…") {
		t.Errorf("%d bytes", len(words))
	}
}

func TestValidateContribution(t *testing.T) {
	t.Parallel()
	raw := func(s string) json.RawMessage { return json.RawMessage(s) }
	long := strings.Repeat("x", 257)
	own := func(c phases.Common) *phases.Noop { return &phases.Noop{Common: c} }
	section := func(change func(*phases.PromptSection)) *phases.PromptSection {
		s := &phases.PromptSection{SectionID: "s"}
		change(s)
		return s
	}
	tests := []struct {
		name string
		c    phases.Contribution
		want string
	}{
		{"noop", own(phases.Common{}), ""},
		{"id", own(phases.Common{ContributionID: long}), "noop: contribution_id is not an id"},
		{"domain", own(phases.Common{Domain: "\xff"}), "noop: domain is not an id"},
		{"code of a diagnostic", own(phases.Common{Diagnostics: []phases.Diagnostic{{Code: long}}}), "diagnostics is longer"},
		{"message of a diagnostic", own(phases.Common{Diagnostics: []phases.Diagnostic{{Message: "\x00"}}}), "diagnostics holds a NUL"},
		{"policy", &phases.Policy{Common: phases.Common{Domain: "d"}, Key: "k", Value: raw(`null`)}, ""},
		{"policy without domain", &phases.Policy{Key: "k", Value: raw(`1`)}, "policy: domain is empty"},
		{"policy without key", &phases.Policy{Common: phases.Common{Domain: "d"}, Value: raw(`1`)}, "policy: key is empty"},
		{"policy without value", &phases.Policy{Common: phases.Common{Domain: "d"}, Key: "k"}, "policy: value is empty"},
		{"policy of bad JSON", &phases.Policy{Common: phases.Common{Domain: "d"}, Key: "k", Value: raw(`{`)}, "policy: value is not valid JSON"},
		{"context", &phases.PromptContext{Content: "x", SourceRefs: []phases.SourceRef{{Kind: "file"}}}, ""},
		{"context text", &phases.PromptContext{Content: "\xff"}, "prompt_context: content is not valid UTF-8"},
		{"context limit", &phases.PromptContext{MaxChars: -1}, "max_chars is negative"},
		{"context source", &phases.PromptContext{SourceRefs: []phases.SourceRef{{Kind: "folder"}}}, `source_refs is "folder"`},
		{"context source id", &phases.PromptContext{SourceRefs: []phases.SourceRef{{Kind: "file", ID: "\x00"}}}, "source_refs holds a NUL"},
		{"section", section(func(s *phases.PromptSection) { s.Cut, s.Frame = &phases.SelfCut{}, &phases.Frame{} }), ""},
		{"section without id", &phases.PromptSection{}, "section_id is not a name"},
		{"section title", section(func(s *phases.PromptSection) { s.Title = "a\nb" }), "title is more than one line"},
		{"section stability", section(func(s *phases.PromptSection) { s.Stability = "solid" }), `stability is none of stable, dynamic`},
		{"section placement", section(func(s *phases.PromptSection) { s.Placement = "top" }), `placement is none of system, system_message, user_message`},
		{"section content", section(func(s *phases.PromptSection) { s.Content = "\x00" }), "content holds a NUL"},
		{"section frame", section(func(s *phases.PromptSection) { s.Frame = &phases.Frame{Open: "\xff"} }), "frame is not valid UTF-8"},
		{"section limit", section(func(s *phases.PromptSection) { s.MaxChars = -1 }), "max_chars is negative"},
		{"section cut grows", section(func(s *phases.PromptSection) { s.Cut = &phases.SelfCut{Original: 1, Kept: 2} }), "cut kept must be between 0 and original"},
		{"bundle", &phases.ToolBundle{BundleID: "b", Tools: []phases.Tool{{Name: "t"}}}, ""},
		{"bundle without id", &phases.ToolBundle{}, "bundle_id"},
		{"bundle with a bad tool", &phases.ToolBundle{BundleID: "b", Tools: []phases.Tool{{Name: "t"}, {Name: "t"}}}, `tools[1]: "t" is there twice`},
		{"decision", &phases.Decision{Verdict: phases.VerdictAsk}, ""},
		{"decision without verdict", &phases.Decision{}, `verdict is none of allow, ask, deny`},
		{"decision's code", &phases.Decision{Verdict: "deny", ReasonCode: long}, "reason_code is not a code"},
		{"rewrite", &phases.Rewrite{Path: "/a/0", Value: raw(`1`)}, ""},
		{"rewrite path", &phases.Rewrite{Path: "a", Value: raw(`1`)}, "path is not a JSON pointer"},
		{"rewrite value", &phases.Rewrite{Path: "/a"}, "value is empty"},
		{"rewrite with a name twice", &phases.Rewrite{Value: raw(`{"a":{"command":"ls","c\u006fmmand":"rm"}}`)}, `the name "command" is there twice`},
		{"reminder", &phases.Reminder{Type: "a.b", Attributes: map[string]string{"n": "v"}}, ""},
		{"reminder without type", &phases.Reminder{Text: "x"}, "type is not a name"},
		{"reminder text", &phases.Reminder{Type: "t", Text: "\x00"}, "text holds a NUL"},
		{"reminder key", &phases.Reminder{Type: "t", DedupeKey: "\xff"}, "dedupe_key is not valid UTF-8"},
		{"reminder attribute", &phases.Reminder{Type: "t", Attributes: map[string]string{"a b": ""}}, `attributes is "a b"`},
		{"diagnostic", &phases.ManifestDiagnostic{Code: "c", Severity: phases.SeverityError}, ""},
		{"diagnostic without code", &phases.ManifestDiagnostic{}, "code is empty"},
		{"diagnostic severity", &phases.ManifestDiagnostic{Code: "c", Severity: "bad"}, `severity is none of info, warning, error (invalid_reply): severity is "bad"`},
		{"audit", &phases.Audit{EventKind: "e"}, ""},
		{"audit without kind", &phases.Audit{}, "event_kind is empty"},
		{"job", &phases.BackgroundJob{JobKind: "j", Payload: raw(`[]`)}, ""},
		{"job without kind", &phases.BackgroundJob{}, "job_kind is empty"},
		{"job payload", &phases.BackgroundJob{JobKind: "j", Payload: raw(strings.Repeat("[", 33) + strings.Repeat("]", 33))}, "payload is JSON nested deeper than 32"},
	}
	everything := phases.Custom("x.test.any", "", 0, phases.Kinds()...)
	seen := map[phases.Kind]bool{}
	for _, tt := range tests {
		seen[phases.KindOf(tt.c)] = true
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := phases.ValidateContribution(tt.c, everything)
			if tt.want == "" {
				mentions(t, err)
				return
			}
			mentions(t, err, tt.want)
			if phases.CodeOf(err) != phases.CauseInvalidReply {
				t.Errorf("the code is %s", phases.CodeOf(err))
			}
		})
	}
	for _, k := range phases.Kinds() {
		if !seen[k] {
			t.Errorf("%s is not tested", k)
		}
	}
}

// FuzzValidNames compares the checks of names and ids with the patterns that define them.
func FuzzValidNames(f *testing.F) {
	name := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:/-]{0,127}$`)
	id := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.:/#-]*$`)
	for _, s := range []string{"", "a", "_a", "house_rules", "A_b.c:d/e-f", "a*", "a#1", "#", "a b", "a\n", "é", "\xff", strings.Repeat("a", 128), strings.Repeat("a", 129), strings.Repeat("a", 257)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := phases.ValidName(s), name.MatchString(s); got != want {
			t.Errorf("ValidName(%q) = %v", s, got)
		}
		if got, want := phases.ValidID(s), len(s) <= phases.MaxIDBytes && id.MatchString(s); got != want {
			t.Errorf("ValidID(%q) = %v", s, got)
		}
	})
}

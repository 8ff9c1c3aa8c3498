package providers_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/providers"
)

// TestChanges: the changes say where sections of the manifest went; where they say nothing, the request has the text
// of fingerprint_full as its system prompt.
func TestChanges(t *testing.T) {
	t.Parallel()

	renamed := providers.Change{Kind: manifest.RequestToolName, ID: "memory.search", Manifest: "memory.search", Sent: "memory_search"}
	moved := func(id, from, to string) providers.Change {
		return providers.Change{Kind: manifest.RequestPlacement, ID: id, Manifest: from, Sent: to}
	}
	folded := moved("rules", "system_message", "system")
	behind := moved("skills_runtime", "system", providers.PlaceAfterConversation)
	for _, tt := range []struct {
		provider, model string
		behind          bool
		want            []providers.Change
	}{
		{compiler.OpenAI, "gpt-5", false, []providers.Change{renamed}},
		{compiler.OpenAI, "gpt-5", true, []providers.Change{renamed, behind}},
		{compiler.Anthropic, "claude-sonnet-5", false, []providers.Change{renamed, folded}},
		{compiler.Anthropic, "claude-sonnet-5", true, []providers.Change{renamed, behind, folded}},
		{compiler.Gemini, "gemini-2.5-pro", false, []providers.Change{folded}},
		{compiler.Gemini, "gemini-2.5-pro", true, []providers.Change{behind, folded}},
	} {
		r := sample(t, tt.model)
		if tt.behind {
			r.AfterConversation = []string{"skills_runtime"}
		}
		got := send(t, adapters()[tt.provider].build, r)
		if diff := cmp.Diff(got.changes, tt.want); diff != "" {
			t.Errorf("%s, behind: %v (-got +want):\n%s", tt.provider, tt.behind, diff)
		}
		system := systemPrompt(t, got.body)
		if tt.provider != compiler.OpenAI {
			system = strings.TrimSuffix(system, "Answer briefly.") // the section that was folded in
		}
		if same := system == r.Prompt.FullText; same == tt.behind {
			t.Errorf("%s, behind: %v: the system prompt is the full text: %v\n%q\n%q", tt.provider, tt.behind, same, system, r.Prompt.FullText)
		}
	}
}

// systemPrompt joins the texts of a request's system prompt.
func systemPrompt(t *testing.T, body []byte) string {
	t.Helper()
	type text struct {
		Text string `json:"text"`
	}
	var v struct {
		System []text `json:"system"`
		Input  []struct {
			Content json.RawMessage `json:"content"`
		} `json:"input"`
		Config struct {
			SystemInstruction struct {
				Parts []text `json:"parts"`
			} `json:"systemInstruction"`
		} `json:"config"`
	}
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if len(v.Input) > 0 {
		var text string
		if err := json.Unmarshal(v.Input[0].Content, &text); err != nil {
			t.Fatal(err)
		}
		b.WriteString(text)
	}
	for _, list := range [][]text{v.System, v.Config.SystemInstruction.Parts} {
		for _, p := range list {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

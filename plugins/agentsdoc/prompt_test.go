package agentsdoc

import (
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/phases"
)

func TestSection(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{"r/.git/HEAD": "", "r/AGENTS.md": "Be brief.\n", "r/a/AGENTS.md": "Use tabs.\n", "r/a/b/x.go": ""})
	p := configured(t, "")
	got := askSection(t, p, inDir(base, "r/a/b"), phases.AnswerBudget{MaxChars: 16_000})
	content := got.Content
	got.Content = ""
	want := &phases.PromptSection{
		SectionID: "agents_md", Title: "AGENTS.md", Stability: phases.StabilityDynamic,
		Frame: &phases.Frame{Open: chain.FramePreamble + "\n\n<AGENTS_MD>", Close: "</AGENTS_MD>"},
		SourceRefs: []phases.SourceRef{
			{Kind: "file", ID: filepath.Join(base, "r/AGENTS.md"), Label: "AGENTS.md", Hash: hashOf("Be brief.\n")},
			{Kind: "file", ID: filepath.Join(base, "r/a/AGENTS.md"), Label: "a/AGENTS.md", Hash: hashOf("Use tabs.\n")},
		},
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
	end := "[source: \"AGENTS.md\", scope project, kept 10 of 10 bytes]\nBe brief.\n" +
		"[source: \"a/AGENTS.md\", scope project, kept 10 of 10 bytes]\nUse tabs."
	if !strings.HasSuffix(content, end) {
		t.Errorf("the content is\n%s\nwant it to end in\n%s", content, end)
	}
	if n := strings.Count(chain.FramePreamble, ". ") + 1; n != 2 || !strings.HasSuffix(chain.FramePreamble, ".") {
		t.Errorf("the preamble has %d sentences", n)
	}
}

// hashOf is the hash of a content as source references have it.
func hashOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func TestNothingToSay(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{"r/.git/HEAD": "", "r/a/x": "", "n/.git/HEAD": "", "n/agents.md": "near", "e/AGENTS.md": "\n \n"})
	tests := []struct {
		name, config string
		dir          string
		room         int
		codes        []string // of a noop; nil is no contribution
	}{
		{"no directory in the context", "", "", 0, nil},
		{"no file", "", "r/a", 0, nil},
		{"blank file", "", "e", 0, nil},
		{"near miss only", "", "n", 0, []string{"near_miss_name"}},
		{"directory is not there", "", "r/gone", 0, []string{"read_error"}},
		{"budget of nothing", `{"budget":{"total":0},"names":["x"]}`, "r/a", 0, nil},
		{"room smaller than the frame", `{"names":["near.md","agents.md"]}`, "n", 10, []string{"omitted_budget"}},
		{"root elsewhere", `{"root":"` + base + `/e"}`, "r", 0, []string{"root_refused"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			where := phases.Context{}
			if tt.dir != "" {
				where = inDir(base, tt.dir)
			}
			c := ask(t, configured(t, tt.config), where, phases.AnswerBudget{MaxChars: tt.room})
			if tt.codes == nil {
				if c != nil {
					t.Errorf("got %T with %v, want nothing", c, codes(c))
				}
				return
			}
			if _, ok := c.(*phases.Noop); !ok {
				t.Fatalf("got %T, want a noop", c)
			}
			if diff := cmp.Diff(codes(c), tt.codes); diff != "" {
				t.Errorf("codes (-got +want)\n%s", diff)
			}
		})
	}
}

func TestCutIsReported(t *testing.T) {
	t.Parallel()
	base := build(t, map[string]string{"one/AGENTS.md": strings.Repeat("x", 33)})
	t.Run("by one byte of one file", func(t *testing.T) {
		t.Parallel()
		got := askSection(t, configured(t, `{"budget":{"file":32}}`), inDir(base, "one"), phases.AnswerBudget{})
		if got.Cut == nil || got.Cut.Original <= got.Cut.Kept {
			t.Errorf("cut is %+v: the marker is longer than what it stands for, and still it is a cut", got.Cut)
		}
	})
	t.Run("not at all", func(t *testing.T) {
		t.Parallel()
		if got := askSection(t, configured(t, ""), inDir(base, "one"), phases.AnswerBudget{}); got.Cut != nil {
			t.Errorf("cut is %+v", got.Cut)
		}
	})
}

package skills

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

func TestReadSkill(t *testing.T) {
	t.Parallel()
	dir := three(t)
	directory := filepath.Join(dir, ".agents/skills/go-style")
	write(t, filepath.Join(directory, "refs/names.md"), "Short names.\n")
	write(t, filepath.Join(directory, "bin"), "\x00")
	head := "Skill: go-style\nDirectory: " + directory + " (paths in the text are relative to it)\n\n"
	tests := []struct {
		name, arguments string
		want            string
		isError         bool
	}{
		{"empty file", `{"slug":"go-style","file":""}`, head + "Write Go.", false},
		{"a file", `{"slug":"go-style","file":"refs/names.md"}`, "Short names.\n", false},
		{"not near", `{"slug":"xxxxxxxxxxxx"}`, `there is no skill "xxxxxxxxxxxx"; there are: any, docs, go-style`, true},
		{"case counts", `{"slug":"Go-Style"}`, `there is no skill "Go-Style" (did you mean "go-style"?); there are: any, docs, go-style`, true},
		{"hostile slug", `{"slug":"../<x>\u202e"}`, `there is no skill "../\\u{3c}x\\u{3e}\\u{202e}"; there are: any, docs, go-style`, true},
		{"escape", `{"slug":"any","file":"../go-style/SKILL.md"}`, `the file "../go-style/SKILL.md" of the skill any is not a path below the skill's directory`, true},
		{"absolute file", `{"slug":"any","file":"/etc/passwd"}`, `the file "/etc/passwd" of the skill any is not a path below the skill's directory`, true},
		{"absent file", `{"slug":"any","file":"x"}`, `the file "x" of the skill any does not exist`, true},
		{"binary file", `{"slug":"go-style","file":"bin"}`, `the file "bin" of the skill go-style holds a NUL, so it is not text`, true},
		{"directory", `{"slug":"go-style","file":"refs"}`, `the file "refs" of the skill go-style is a directory`, true},
		{"no slug", `{}`, `the arguments are {"slug": …} or {"slug": …, "file": …}, both texts`, true},
		{"another field", `{"slug":"any","path":"x"}`, `the arguments are {"slug": …} or {"slug": …, "file": …}, both texts`, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, isError := readSkill(t, configured(t, ""), inDir(dir), tt.arguments)
			if got != tt.want || isError != tt.isError {
				t.Errorf("got %q, error %v\nwant %q, error %v", got, isError, tt.want, tt.isError)
			}
		})
	}
}

// TestReadsOnlyItsContext: a skill that the call's own directory does not show cannot
// be read, nor one that the operator leaves out.
func TestReadsOnlyItsContext(t *testing.T) {
	t.Parallel()
	dir, other := three(t), project(t, map[string]string{"secret": "|Secret."})
	p := configured(t, `{"exclude":["do*"]}`)
	for _, slug := range []string{"secret", "docs"} {
		text, isError := readSkill(t, p, inDir(dir), `{"slug":"`+slug+`"}`)
		if !isError || strings.Contains(text, "Secret.") || strings.Contains(text, "documents") {
			t.Errorf("%s: %q", slug, text)
		}
	}
	if _, isError := readSkill(t, p, inDir(other), `{"slug":"secret"}`); isError {
		t.Error("not even where it is shown")
	}
	if text, isError := readSkill(t, p, phases.Context{}, `{"slug":"any"}`); !isError || text != "there are no skills here" {
		t.Errorf("without a directory: %q", text)
	}
}

func TestAnswerFitsTheFrame(t *testing.T) {
	t.Parallel()
	dir := project(t, map[string]string{"a": "|" + strings.Repeat("x", 5000)})
	for most, want := range map[int]bool{0: false, 4 << 20: false, 6000: true, 1000: true} {
		res, err := configured(t, "").CallTool(t.Context(), &phases.ToolCall{
			Tool: toolName, Arguments: json.RawMessage(`{"slug":"a"}`), Context: inDir(dir), Budget: phases.AnswerBudget{MaxBytes: most},
		})
		if err != nil || res.IsError != want || most > 0 && len(res.Content) > most {
			t.Errorf("room %d: error %v, %d bytes, %v", most, res.IsError, len(res.Content), err)
		}
	}
}

func TestManyUnknown(t *testing.T) {
	t.Parallel()
	list := map[string]string{}
	for i := range maxNamed + 6 {
		list["s"+strings.Repeat("0", i%8)+string(rune('a'+i/8))] = ""
	}
	text, _ := readSkill(t, configured(t, ""), inDir(project(t, list)), `{"slug":"nothing-like-it"}`)
	if strings.Count(text, ",") != maxNamed-1 || !strings.HasSuffix(text, " and 6 more") {
		t.Errorf("got %q", text)
	}
}

package skillset

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

func TestLint(t *testing.T) {
	t.Parallel()
	base := build(t, files{
		"skills/fine/SKILL.md":           skillText("fine", ""),
		"skills/long/SKILL.md":           "---\nname: long\ndescription: " + strings.Repeat("x", maxDescription+1) + "\n---\n",
		"skills/renamed/SKILL.md":        "---\ndescription: b\nname: other\n---\n",
		"skills/twin/SKILL.md":           "---\ndescription: b\nname: other\n---\n",
		"skills/mute/SKILL.md":           "---\nname: mute\n---\n",
		"skills/node_modules/x/SKILL.md": "no skill",
		"skills/.git/x/SKILL.md":         "no skill",
		"outside/SKILL.md":               "no skill",
		"tree/.agents/skills/a/SKILL.md": skillText("a", ""),
		"deep/skills/b/skill.md":         skillText("b", ""),
		"deep/skills/c/d/SKILL.md":       skillText("d", ""),
		"tree/.claude/skills/b/SKILL.md": skillText("b", ""),
		"tree/.claude/other/c/SKILL.md":  "no skill",
		"skills/away":                    "-> ../outside",
		"skills/private/SKILL.md":        "---\nname: private\ndescription: b\ndisable-model-invocation: true\n---\n",
	})
	tests := []struct {
		dir             string
		skills, refused int
		broken          bool
		want            []string
	}{
		{"skills/fine", 1, 0, false, nil},
		{"tree", 2, 0, false, nil},
		{"deep", 1, 0, true, []string{"warning misplaced_skill b:0", "warning misplaced_skill d:0"}},
		{"skills/private", 1, 0, false, []string{"info model_invocation_disabled private:0"}},
		{"skills", 7, 2, true, []string{
			"error symlink_escape away:0",
			"warning invalid_description long:3",
			"error invalid_description mute:1",
			"info model_invocation_disabled private:0",
			"warning invalid_name renamed:3",
			"warning invalid_name twin:3",
			"warning duplicate_skill twin:0",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.dir, func(t *testing.T) {
			t.Parallel()
			r, err := Lint(filepath.Join(base, filepath.FromSlash(tt.dir)))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, f := range r.Findings {
				got = append(got, fmt.Sprintf("%s %s %s:%d", f.Severity, f.Code, filepath.Base(filepath.Dir(f.Path)), f.Line))
				if f.Rule == "" || f.Remedy == "" || f.Detail == "" {
					t.Errorf("%+v says too little", f)
				}
			}
			if diff := cmp.Diff(got, tt.want); diff != "" || r.Skills != tt.skills || r.Refused != tt.refused || r.Broken() != tt.broken {
				t.Errorf("%d skills, %d refused, broken %v (-got +want)\n%s", r.Skills, r.Refused, r.Broken(), diff)
			}
		})
	}
	if _, err := Lint(filepath.Join(base, "absent")); err == nil {
		t.Error("a directory that is not there has no error")
	}
	if r, err := Lint(filepath.Join(base, "skills", "mute")); err != nil || r.Findings[0].Severity != phases.SeverityError {
		t.Errorf("%+v, %v", r, err)
	}
}

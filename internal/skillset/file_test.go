package skillset

import (
	"errors"
	"strings"
	"testing"
)

func TestReadFile(t *testing.T) {
	t.Parallel()
	base := build(t, files{
		"secret":                             "secret",
		"repo/.git/":                         "",
		"repo/.agents/skills/a/SKILL.md":     skillText("a", "Body"),
		"repo/.agents/skills/a/refs/api.md":  "\ufeffone\r\ntwo \u202e",
		"repo/.agents/skills/a/empty":        "",
		"repo/.agents/skills/a/inner":        "-> refs/api.md",
		"repo/.agents/skills/a/out":          "-> ../../../../secret",
		"repo/.agents/skills/a/abs":          "-> BASE/secret",
		"repo/.agents/skills/a/other":        "-> ../b/SKILL.md",
		"repo/.agents/skills/a/loop":         "-> loop",
		"repo/.agents/skills/a/bin":          "a\x00b",
		"repo/.agents/skills/a/latin":        "caf\xe9",
		"repo/.agents/skills/a/large":        strings.Repeat("x", maxSkill+1),
		"repo/.agents/skills/b/SKILL.md":     skillText("b", ""),
		"repo/.agents/skills/a/refs/..x/y.z": "dots",
	})
	s := Resolve(base+"/repo", project()).Find("a")
	if s == nil {
		t.Fatal("no skill")
	}
	tests := []struct {
		name, want string
		code       Code
	}{
		{"refs/api.md", "one\ntwo \ufffd", ""},
		{"refs/../refs/api.md", "one\ntwo \ufffd", ""},
		{"refs/..x/y.z", "dots", ""},
		{"inner", "one\ntwo \ufffd", ""},
		{"empty", "", ""},
		{"", "", CodeReadError},
		{"..", "", CodeReadError},
		{"../b/SKILL.md", "", CodeReadError},
		{base + "/secret", "", CodeReadError},
		{"out", "", CodeReadError},
		{"abs", "", CodeReadError},
		{"other", "", CodeReadError},
		{"loop", "", CodeReadError},
		{"absent", "", CodeReadError},
		{"refs", "", CodeNotRegular},
		{"SKILL.md/x", "", CodeNotRegular},
		{"bin", "", CodeBinary},
		{"latin", "", CodeBinary},
		{"large", "", CodeTooLarge},
		{"a\x00b", "", CodeReadError},
		{strings.Repeat("long/", 2000), "", CodeReadError},
	}
	for _, tt := range tests {
		t.Run(tt.name[:min(len(tt.name), 30)], func(t *testing.T) {
			t.Parallel()
			got, err := ReadFile(s, tt.name)
			failed, _ := errors.AsType[*FileError](err)
			switch {
			case tt.code == "" && (err != nil || got != tt.want):
				t.Errorf("got %.100q, %v, want %.100q", got, err, tt.want)
			case tt.code != "" && (failed == nil || failed.Code != tt.code || failed.Error() == "" || got != ""):
				t.Errorf("got %.100q, %+v, want %s", got, err, tt.code)
			case failed != nil && (strings.Contains(failed.Detail, "secret") || strings.Contains(failed.Detail, base)):
				t.Errorf("it tells too much: %s", failed.Detail)
			}
		})
	}
}

func TestReadFileOfAVanishedSkill(t *testing.T) {
	t.Parallel()
	for _, vanished := range []place{{"", "/nowhere/at/all", "."}, {"", "/", "nowhere/at/all"}, {"/", "/nowhere/at/all", "."}} {
		_, err := ReadFile(&Skill{at: vanished}, "x")
		if failed, ok := errors.AsType[*FileError](err); !ok || failed.Detail != "does not exist" {
			t.Errorf("%v: %v", vanished, err)
		}
	}
}

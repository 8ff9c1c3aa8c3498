package skillset

import (
	"fmt"
	"testing"
)

// fifty is a tree with fifty skills.
func fifty(b *testing.B) string {
	b.Helper()
	tree := files{".git/": "", "app/api/": ""}
	for i := range 50 {
		name := fmt.Sprintf("skill-%02d", i)
		tree[".agents/skills/"+name+"/SKILL.md"] = skillText(name, "paths: [\"src/"+name+"/**/*.go\"]\n", "Do it well.")
	}
	base := build(b, tree)
	age(b, base)
	return base
}

// BenchmarkFresh50 is what a turn pays while nothing changes.
func BenchmarkFresh50(b *testing.B) {
	s := Resolve(fifty(b)+"/app/api", project(".agents/skills", ".claude/skills"))
	b.ReportAllocs()
	for b.Loop() {
		if !s.Fresh() {
			b.Fatal("it changed")
		}
	}
}

// BenchmarkResolve50 is what a change costs.
func BenchmarkResolve50(b *testing.B) {
	dir := fifty(b) + "/app/api"
	b.ReportAllocs()
	for b.Loop() {
		if s := Resolve(dir, project(".agents/skills", ".claude/skills")); len(s.Skills) != 50 {
			b.Fatal("skills are missing")
		}
	}
}

func BenchmarkMatch50(b *testing.B) {
	s := Resolve(fifty(b), project())
	b.ReportAllocs()
	for b.Loop() {
		for i := range s.Skills {
			s.Skills[i].Matches("src/skill-49/deep/er/file.go")
		}
	}
}

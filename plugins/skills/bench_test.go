package skills

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// BenchmarkTurn50 is a steady turn with fifty skills, of which three have their
// full text in the prompt: the tool and the section.
func BenchmarkTurn50(b *testing.B) {
	list := map[string]string{}
	for i := range 50 {
		list[fmt.Sprintf("skill-%02d", i)] = "|A body that nobody sees."
	}
	for i := range 3 {
		list[fmt.Sprintf("skill-%02d", i)] = fmt.Sprintf("src/%d/**|A body of a few words.", i)
	}
	dir := project(b, list)
	old := time.Now().Add(-time.Hour)
	if err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, old, old)
	}); err != nil {
		b.Fatal(err)
	}
	p, where := configured(b, ""), inDir(dir)
	touch(b, p, where, "src/0/x", "src/1/x", "src/2/x")
	b.ReportAllocs()
	for b.Loop() {
		ask(b, p, phases.Dispatch{Hook: "tool", Context: where, Input: &phases.PreToolsInput{ToolCalling: true}})
		if got := sections(b, p, where, 16_000); len(got) != 4 {
			b.Fatalf("fragments %q", ids(got))
		}
	}
}

func BenchmarkTouched(b *testing.B) {
	dir := project(b, map[string]string{"a": "**|x"})
	p, where := configured(b, ""), inDir(dir)
	b.ReportAllocs()
	for b.Loop() {
		touch(b, p, where, "src/0/x", "src/1/x")
	}
}

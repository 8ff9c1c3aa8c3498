package skillset_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/grapnelhq/grapnel/internal/skillset"
)

func Example() {
	dir, err := os.MkdirTemp("", "tree")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	directory := filepath.Join(dir, ".agents", "skills", "release")
	if err := os.MkdirAll(directory, 0o700); err != nil {
		fmt.Println(err)
		return
	}
	text := "---\nname: release\ndescription: How to cut a release.\npaths: CHANGELOG.md\n---\n\n1. Update the changelog.\n"
	if err := os.WriteFile(filepath.Join(directory, "SKILL.md"), []byte(text), 0o600); err != nil {
		fmt.Println(err)
		return
	}

	set := skillset.Resolve(dir, skillset.Options{Directories: []string{".agents/skills"}, Markers: []string{".git"}})
	for _, s := range set.Skills {
		fmt.Println(s.Slug, "-", s.Description)
		fmt.Println(s.Label, s.Matches("CHANGELOG.md"), s.Matches("main.go"))
		fmt.Println(s.Body)
	}
	// Output:
	// release - How to cut a release.
	// .agents/skills/release/SKILL.md true false
	// 1. Update the changelog.
}

package lazy_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/lazy"
)

// makeTree makes a source tree with two instruction files.
func makeTree() (string, error) {
	root, err := os.MkdirTemp("", "tree")
	if err != nil {
		return "", err
	}
	for name, text := range map[string]string{
		".git/HEAD":     "",
		"AGENTS.md":     "Run the tests before you commit.\n",
		"web/AGENTS.md": "Never write inline styles.\n",
		"web/shop.css":  "",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			return "", err
		}
	}
	return root, nil
}

// begin is what a host does when it makes the first prompt of a session.
func begin(root string) lazy.State {
	c := chain.Resolve(chain.OS{}, root, chain.Default())
	return lazy.Begin(0, c, chain.Render(c, chain.Budget{Bytes: 32 << 10, Chars: 16_000}))
}

// print leaves out of a text what differs from run to run.
func show(root, text string) {
	text = strings.ReplaceAll(text, root, "/repo")
	fmt.Println(regexp.MustCompile(`mtime: \d+`).ReplaceAllString(text, "mtime: N"))
}

func ExampleState_Touch() {
	root, err := makeTree()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(root) }()

	s := begin(root)
	got := s.Touch(chain.OS{}, chain.Default(), []string{"web/shop.css"})
	show(root, got.Reminder)
	again := s.Touch(chain.OS{}, chain.Default(), []string{"web"})
	fmt.Println(len(again.Files), "files the second time")
	// Output:
	// <system-reminder type="agents.resolve.paths">
	// More instruction files apply to this path:
	// - /repo/web/AGENTS.md (mtime: N)
	// Their text follows. Follow it when you change files in their directories or below.
	// [source: "web/AGENTS.md", scope nested, kept 27 of 27 bytes]
	// Never write inline styles.
	// </system-reminder>
	// 0 files the second time
}

func ExampleState_Resume() {
	root, err := makeTree()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(root) }()

	s := begin(root)
	data, err := lazy.Encode(s)
	if err != nil {
		fmt.Println(err)
		return
	}
	// Another process goes on, in another working directory.
	s, err = lazy.Decode(data)
	if err != nil {
		fmt.Println(err)
		return
	}
	got := s.Resume(chain.Resolve(chain.OS{}, filepath.Join(root, "web"), chain.Default()))
	show(root, got.Reminder)
	// Output:
	// <system-reminder type="session.resume.diff">
	// The session was resumed, and its context has changed:
	// - cwd: /repo -> /repo/web
	// Look again at the instruction files in scope before you go on:
	// - /repo/web/AGENTS.md (mtime: N)
	// </system-reminder>
}

func ExampleState_Changed() {
	root, err := makeTree()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(root) }()

	s := begin(root)
	if err := os.WriteFile(filepath.Join(root, "AGENTS.md"), []byte("Commit when the tests pass.\n"), 0o644); err != nil {
		fmt.Println(err)
		return
	}
	got := s.Changed(chain.Resolve(chain.OS{}, root, chain.Default()))
	show(root, got.Reminder)
	// Output:
	// <system-reminder type="agents.changed">
	// Instruction files that were loaded have changed:
	// - /repo/AGENTS.md (updated, mtime: N)
	// Their present text follows, and stands in for the one that was loaded.
	// [source: "AGENTS.md", scope project, kept 28 of 28 bytes]
	// Commit when the tests pass.
	// </system-reminder>
}

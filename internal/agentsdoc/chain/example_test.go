package chain_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
)

// makeTree makes a source tree with three instruction files, of which one has
// no text.
func makeTree() (string, error) {
	root, err := os.MkdirTemp("", "tree")
	if err != nil {
		return "", err
	}
	for name, text := range map[string]string{
		".git/HEAD":              "",
		"AGENTS.md":              "Run the tests before you commit.\n",
		"web/AGENTS.md":          "Use the components of this directory.\nNever write inline styles.\n",
		"web/shop/AGENTS.md":     "Prices are integers.\n",
		"web/AGENTS.override.md": "",
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

func ExampleResolve() {
	root, err := makeTree()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(root) }()

	c := chain.Resolve(chain.OS{}, filepath.Join(root, "web", "shop"), chain.Default())
	for _, s := range c.Sources {
		fmt.Printf("%s: %s %q\n", s.Display, s.State, s.Reason)
	}
	for _, d := range c.Diagnostics {
		fmt.Println(d.Severity, d.Code, d.Detail)
	}
	// Output:
	// AGENTS.md: kept ""
	// web/AGENTS.override.md: skipped "empty_override"
	// web/AGENTS.md: kept ""
	// web/shop/AGENTS.md: kept ""
	// info empty_override the override is empty and replaces nothing
}

func ExampleRender() {
	root, err := makeTree()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(root) }()

	c := chain.Resolve(chain.OS{}, filepath.Join(root, "web", "shop"), chain.Default())
	r := chain.Render(c, chain.Budget{Bytes: 32768, Chars: 480})
	fmt.Print(r.Text)
	fmt.Println("--")
	for _, d := range r.Diagnostics {
		fmt.Println(d.Severity, d.Code, d.Detail)
	}
	// Output:
	// These are the instruction files that apply here, from the most general to the most specific.
	// Where two disagree, the later one is more specific and wins. System, developer and explicit user messages win over all of them.
	//
	// [omitted: 1 files, budget exhausted]
	// [source: "web/AGENTS.md", scope project, kept 65 of 65 bytes]
	// Use the components of this directory.
	// Never write inline styles.
	// [source: "web/shop/AGENTS.md", scope project, kept 21 of 21 bytes]
	// Prices are integers.
	// --
	// error omitted_budget 33 bytes; the budget is exhausted
}

func ExamplePrintPlainPath() {
	fmt.Println(chain.PrintPlainPath("docs/\n[source: x]/AGENTS.md"))
	// Output: docs/\u{a}[source: x]/AGENTS.md
}

func ExampleForPreset() {
	o, err := chain.ForPreset(chain.PresetCodelia, chain.Places{Home: "/u/ada"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(o.Names, o.Markers, o.Layout, o.Placement, o.Budget.Files, o.Budget.Total)
	// Output: [AGENTS.md] [.codelia .git .jj] titled system_message 16 262144
}

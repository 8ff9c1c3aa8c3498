package lint_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/internal/agentsdoc/lint"
)

func ExampleRun() {
	root, err := os.MkdirTemp("", "lint")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(root) }()
	for _, name := range []string{".git/HEAD", "AGENTS.md", "service/agents.md"} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			fmt.Println(err)
		}
		if err := os.WriteFile(path, []byte("Answer in whole sentences.\n"), 0o600); err != nil {
			fmt.Println(err)
		}
	}

	report, err := lint.Run(context.Background(), root, lint.Options{Chain: chain.Default(), Chars: 15_000})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Files, "file in", report.Directories, "directories")
	for _, p := range report.Problems {
		rel, _ := filepath.Rel(root, p.Path)
		fmt.Println(p.Severity, p.Code, filepath.ToSlash(rel))
	}
	// Output:
	// 1 file in 2 directories
	// warning near_miss_name service/agents.md
}

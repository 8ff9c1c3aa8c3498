package agentsdoc_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc"
)

func Example() {
	dir, err := os.MkdirTemp("", "tree")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.WriteFile(filepath.Join(dir, "AGENTS.md"), []byte("Be brief.\n"), 0o600); err != nil {
		fmt.Println(err)
		return
	}

	ctx := context.Background()
	p := agentsdoc.New()
	if _, err := p.Configure(ctx, &phases.Configuration{Config: []byte(`{"global":false,"markers":[]}`)}); err != nil {
		fmt.Println(err)
		return
	}
	res, err := p.Dispatch(ctx, &phases.Dispatch{
		Hook: "prompt", Context: phases.Context{Dir: dir}, Input: &phases.PrePromptCompileInput{}, Budget: phases.AnswerBudget{MaxChars: 16_000},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	section, _ := res.Contributions[0].(*phases.PromptSection)
	_, files, _ := strings.Cut(section.Content, "\n\n")
	fmt.Println(section.SectionID)
	fmt.Println(files)
	// Output:
	// agents_md
	// [source: "AGENTS.md", scope project, kept 10 of 10 bytes]
	// Be brief.
}

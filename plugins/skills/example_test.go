package skills_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/skills"
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
	text := "---\nname: release\ndescription: How to cut a release.\n---\n\n1. Update the changelog.\n"
	if err := os.WriteFile(filepath.Join(directory, "SKILL.md"), []byte(text), 0o600); err != nil {
		fmt.Println(err)
		return
	}

	ctx, where := context.Background(), phases.Context{Dir: dir}
	p := skills.New()
	if _, err := p.Configure(ctx, &phases.Configuration{}); err != nil {
		fmt.Println(err)
		return
	}
	res, err := p.Dispatch(ctx, &phases.Dispatch{
		Hook: "section", Context: where, Input: &phases.PrePromptCompileInput{ToolCalling: true, AvailableTools: []string{"read_skill"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	section, _ := res.Contributions[0].(*phases.PromptSection)
	_, list, _ := strings.Cut(section.Content, "\n\n")
	fmt.Println(section.SectionID)
	fmt.Println(list)

	answer, err := p.CallTool(ctx, &phases.ToolCall{Tool: "read_skill", Arguments: []byte(`{"slug": "relaese"}`), Context: where})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(answer.Content))
	// Output:
	// skills_runtime
	// - release: How to cut a release.
	// "there is no skill \"relaese\" (did you mean \"release\"?); there are: release"
}

// Host is an agent host in one file: it embeds the engine, runs three turns
// against a model that only pretends, and shows what reached that model and
// why. Run it in any folder of a source tree with AGENTS.md files:
//
//	go run ./examples/host --dir .
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/grapnelhq/grapnel/builtin"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// configuration is what a host ships, or reads from its operator's file: two
// first-party plugins, each a process of its own, with their grants.
const configuration = `
version: 1
plugins:
  - name: agentsdoc
    builtin: agentsdoc
    grants: {contribute: [prompt_section], sections: [agents_md], read: ['*']}
    env: {pass: [HOME, XDG_CONFIG_HOME]}
  - name: house
    builtin: scripted
    grants: {contribute: [decision, prompt_section], sections: [house_rules]}
    config:
      hooks:
        - id: rules
          phase: turn.pre_prompt_compile
          respond: [{kind: prompt_section, section_id: house_rules, title: House Rules, content: "Be brief."}]
        - id: guard
          phase: tool.pre_call
          role: validate
          when: 'tool.name == "shell"'
          respond: [{kind: decision, verdict: deny, reason: "no shell here", reason_code: house}]
`

func main() {
	builtin.Main() // does not return in a plugin's process
	dir := flag.String("dir", ".", "working folder of the turns")
	flag.Parse()
	folder, err := filepath.Abs(*dir) // plugins have working folders of their own
	if err != nil {
		fmt.Fprintln(os.Stderr, "host:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err = host(ctx, os.Stdout, folder)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "host:", err)
		os.Exit(1)
	}
}

// host runs three turns of one thread.
func host(ctx context.Context, out io.Writer, dir string) error {
	cfg, err := config.Parse([]byte(configuration), "host")
	if err != nil {
		return err
	}
	launches, err := builtin.Launches()
	if err != nil {
		return err
	}
	eng, err := runtime.New(ctx, cfg, runtime.Options{Builtins: launches})
	if err != nil {
		return err
	}
	defer eng.Close(context.WithoutCancel(ctx))
	for i, message := range []string{"What are the rules here?", "List the files.", "Thank you."} {
		t := phases.Turn{WorkspaceID: "demo", ThreadID: "demo", TurnID: fmt.Sprint(i + 1), Mode: phases.ModeAgent, Dir: dir}
		if err := turn(ctx, eng, out, t, message); err != nil {
			return err
		}
	}
	return nil
}

// turn is the host's loop: prompt, model, tool, end.
func turn(ctx context.Context, eng *runtime.Engine, out io.Writer, with phases.Turn, message string) error {
	t, err := eng.BeginTurn(ctx, with)
	if err != nil {
		return err
	}
	if _, err := t.PrePolicy(ctx, &phases.PrePolicyInput{UserText: phases.T(message)}); err != nil {
		return err
	}
	done, err := t.Compile(ctx, runtime.CompileInput{UserText: message, ToolCalling: true, ExistingTools: []string{"shell"}})
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "turn %s: %d sections, %d characters, %s\n", with.TurnID, len(done.Manifest.Sections), len([]rune(done.Prompt.FullText)), done.Manifest.FingerprintFull)
	for _, s := range done.Manifest.Sections {
		fmt.Fprintf(out, "  %-16s %-9s from %s\n", s.SectionID, s.Stability, s.Owner)
	}
	answer := model(done.Prompt.FullText, message)
	if answer.tool != "" {
		answer.text = callTool(ctx, out, t, answer)
	}
	fmt.Fprintln(out, "  model:", answer.text)
	_, err = t.End(ctx, &phases.PostTurnInput{
		Status: phases.TurnSucceeded, UserText: phases.NewPreview(message, phases.MaxTurnText), AssistantText: phases.NewPreview(answer.text, phases.MaxTurnText),
	})
	return err
}

// callTool asks the plugins before it runs anything.
func callTool(ctx context.Context, out io.Writer, t *runtime.Turn, a answer) string {
	res, err := t.ToolPreCall(ctx, &phases.ToolPreCallInput{Tool: a.tool, Arguments: a.arguments})
	var closed *runtime.PhaseError
	switch {
	case errors.As(err, &closed):
		return "The tool could not be checked: " + closed.Error()
	case err != nil:
		return "The tool could not be checked: " + err.Error()
	case res.Decision != nil && res.Decision.Verdict == phases.VerdictDeny:
		fmt.Fprintf(out, "  tool %s: %s by %s\n", a.tool, res.Decision.Verdict, res.Decision.Reasons[0].Subscription)
		return "I may not do that: " + res.Decision.Reasons[0].Reason + "."
	}
	return "done"
}

// answer is what a model says: text, or a wish to call a tool.
type answer struct {
	text      string
	tool      string
	arguments json.RawMessage
}

// model pretends: a real host sends the prompt to its provider here.
func model(prompt, message string) answer {
	if message == "List the files." {
		return answer{tool: "shell", arguments: json.RawMessage(`{"command": "ls"}`)}
	}
	return answer{text: fmt.Sprintf("I read %d characters of instructions.", len([]rune(prompt)))}
}

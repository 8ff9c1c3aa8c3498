// Host is an agent host in one file: it embeds the engine, runs three turns against a model that only pretends, and
// shows what reached that model and why. Run it in any directory of a source tree with AGENTS.md files:
//
//	go run ./examples/host --dir .
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"

	"github.com/grapnelhq/grapnel/builtin"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc"
	"github.com/grapnelhq/grapnel/plugins/scripted"
	"github.com/grapnelhq/grapnel/runtime"
)

// configuration is what a host ships, or reads from its operator's file: two
// first-party plugins, each a process of its own, with their grants.
const configuration = `
version: 1
plugins:
  - name: agentsdoc
    builtin: agentsdoc
    grants: {contribute: [prompt_section, reminder], sections: [agents_md], read: ['*']}
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

func shipped() builtin.Plugins { return builtin.Plugins{agentsdoc.New, scripted.New} }

func main() {
	builtin.Main(shipped()...) // does not return in a plugin's process
	dir := flag.String("dir", ".", "working directory of the turns")
	flag.Parse()
	abs, err := filepath.Abs(*dir) // plugins have working directories of their own
	if err != nil {
		fmt.Fprintln(os.Stderr, "host:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err = host(ctx, abs)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "host:", err)
		os.Exit(1)
	}
}

// host starts the engine, runs the turns, and ends the engine: after that no plugin process is left.
func host(ctx context.Context, dir string) error {
	cfg, err := config.Parse([]byte(configuration), "host")
	if err != nil {
		return err
	}
	launches, err := shipped().Launches()
	if err != nil {
		return err
	}
	eng, err := runtime.New(ctx, cfg, runtime.Options{Builtins: launches})
	if err != nil {
		return err
	}
	return errors.Join(turns(ctx, eng, dir), eng.Close(context.WithoutCancel(ctx)))
}

func turns(ctx context.Context, eng *runtime.Engine, dir string) error {
	for i, message := range []string{"What are the rules here?", "List the files.", "Thank you."} {
		t := phases.Context{WorkspaceID: "demo", ThreadID: "demo", TurnID: strconv.Itoa(i + 1), Mode: phases.ModeAgent, Dir: dir}
		if err := turn(ctx, eng, t, message); err != nil {
			return err
		}
	}
	return nil
}

// turn is the host's loop: policy, prompt, model, tool, end.
func turn(ctx context.Context, eng *runtime.Engine, with phases.Context, message string) error {
	t, err := eng.BeginTurn(ctx, with)
	if err != nil {
		return err
	}
	text, err := answerTo(ctx, t, message)
	end := &phases.PostTurnInput{Status: phases.TurnSucceeded, UserText: phases.NewPreview(message, phases.MaxTurnText), AssistantText: phases.NewPreview(text, phases.MaxTurnText)}
	if err != nil {
		end.Status, end.Error = phases.TurnFailed, phases.NewPreview(err.Error(), phases.MaxTurnError)
	}
	_, ended := t.End(ctx, end) // always, or its configuration is never dropped
	return errors.Join(err, ended)
}

func answerTo(ctx context.Context, t *runtime.Turn, message string) (string, error) {
	policy, err := t.PrePolicy(ctx, &phases.PrePolicyInput{UserText: phases.T(message)})
	if err != nil {
		return "", err
	}
	if by, no := refused(policy); no {
		return "I may not answer that: " + by.Reason + ".", nil
	}
	done, err := t.Compile(ctx, runtime.CompileInput{UserText: message, ToolCalling: true, ExistingTools: []string{"shell"}})
	if err != nil {
		return "", err
	}
	m := done.Manifest
	fmt.Printf("turn %s: %d sections, %d characters, %s\n", m.TurnID, len(m.Sections), len([]rune(done.Prompt.FullText)), m.FingerprintFull)
	for _, s := range m.Sections {
		fmt.Printf("  %-16s %-9s from %s\n", s.SectionID, s.Stability, s.Owner)
	}
	answer := model(done.Prompt.FullText, message)
	if answer.tool != "" {
		answer.text = callTool(ctx, t, answer)
	}
	fmt.Println("  model:", answer.text)
	return answer.text, nil
}

func callTool(ctx context.Context, t *runtime.Turn, a answer) string {
	checked, err := t.ToolPreCall(ctx, &phases.ToolPreCallInput{Tool: a.tool, Arguments: a.arguments})
	if err != nil { // a guard that did not answer: the phase failed closed
		return "The tool could not be checked: " + err.Error()
	}
	if by, no := refused(checked); no {
		fmt.Printf("  tool %s: %s by %s\n", a.tool, by.Verdict, by.Subscription)
		return "I may not do that: " + by.Reason + "."
	}
	// Go on with what the plugins made of the arguments.
	call, ok := checked.Rewritten.(*phases.ToolPreCallInput)
	if !ok {
		return "The tool could not be checked."
	}
	return fmt.Sprintf("I would run %s %s now.", call.Tool, call.Arguments)
}

// refused says whose decision stands in the way, and why. Nobody can be asked here, so that an ask is a no.
func refused(out *phases.Outcome) (by phases.Reason, no bool) {
	if out.Decision == nil || out.Decision.Verdict == phases.VerdictAllow {
		return by, false
	}
	for _, r := range out.Decision.Reasons { // those of other verdicts are kept too
		if r.Verdict == out.Decision.Verdict {
			return r, true
		}
	}
	return by, true
}

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

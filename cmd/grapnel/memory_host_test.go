package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/grapnelhq/grapnel/jobs"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// hostProgram is the name under which the test binary is a host with memory.
const hostProgram = "memoryhost"

// memoryConfig declares the memory plugin with all that it needs, and with time: the
// machine may be busy, and nothing is about that here. It is required, so that a gateway
// serves no turn before it is up. Only the DSN is missing.
const memoryConfig = `version: 1
budgets:
  turn: {time: 60s}
  phases:
    turn.pre_policy: {time: 20s, require: [memory.policy]}
    turn.pre_prompt_context: {time: 20s}
    turn.pre_tool_materialization: {time: 20s}
    turn.pre_prompt_compile: {time: 20s}
plugins:
  - name: memory
    builtin: memory
    grants:
      contribute: [policy, prompt_context, audit, tool_bundle, prompt_section]
      policies: [memory/turn_policy]
      domains: [memory]
      sections: [memory_recall]
      tools: [memory_search, memory_list, memory_get, memory_remember, memory_forget]
      see: [user_text, assistant_text, status, tool_events, recall_plan, tool_calling, available_tools, policy, context, metadata]
    subscriptions:
      memory.policy: {timeout: 20s}
      memory.recall: {timeout: 20s}
      memory.tools: {timeout: 20s}
      memory.prompt: {timeout: 20s}
    config: {dsn: %q}
`

// memoryHost is "memoryhost CONFIG NAME FROM": a host with an engine and the plugin as
// a process. For each number from FROM on, for each line that it reads, it stores a
// memory by the tool and another by a turn, and says "tool N" and "turn N" when that is
// done. Texts and keys follow from NAME and N: to do a number again is a repetition.
func memoryHost() {
	if err := hostMemories(context.Background(), os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func hostMemories(ctx context.Context, file, name, from string) (err error) {
	n, err := strconv.Atoi(from)
	if err != nil {
		return err
	}
	launches, err := firstParty().Launches()
	if err != nil {
		return err
	}
	extracted := make(chan string, 16)
	eng, err := runtime.Load(ctx, file, runtime.Options{Builtins: launches, OnEvent: func(ev runtime.Event) {
		if ev.Kind == runtime.EventJob && ev.Subscription == "memory.extract" {
			extracted <- ev.State
		}
	}})
	if err != nil {
		return err
	}
	defer func() {
		if closed := eng.Close(ctx); err == nil {
			err = closed
		}
	}()
	lines := bufio.NewReader(os.Stdin)
	for ; ; n++ {
		if _, err := lines.ReadString('\n'); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := storeByTool(ctx, eng, name, n); err != nil {
			return err
		}
		fmt.Println("tool", n)
		if err := storeByTurn(ctx, eng, name, n, extracted); err != nil {
			return err
		}
		fmt.Println("turn", n)
	}
}

// factByTool and factByTurn are what is stored.
func factByTool(name string, n int) string {
	return fmt.Sprintf("The machine %s-%d runs the kernel k%dtool.", name, n, n)
}

func factByTurn(name string, n int) string {
	return fmt.Sprintf("the code word of %s-%d is w%dturn", name, n, n)
}

// storeByTool calls memory_remember for a person, under a key.
func storeByTool(ctx context.Context, eng *runtime.Engine, name string, n int) error {
	args, err := json.Marshal(map[string]string{"text": factByTool(name, n), "scope": "workspace"})
	if err != nil {
		return err
	}
	for {
		res, err := eng.CallTool(ctx, "memory", phases.ToolCall{
			Tool: "memory_remember", Arguments: args, Context: phases.Context{WorkspaceID: "w"}, IdempotencyKey: fmt.Sprintf("%s/%d/tool", name, n),
		})
		switch {
		case err == nil && res.IsError:
			return fmt.Errorf("refused: %s", res.Content)
		case err == nil:
			return nil
		case !gone(err):
			return err
		}
		// The plugin was killed: the engine starts another, for which the next call waits.
	}
}

// gone reports whether a call failed because the plugin's process ended under it, or is
// being started anew.
func gone(err error) bool {
	switch phases.CodeOf(err) {
	case phases.CauseCrash, phases.CauseSessionReset, phases.CauseUnavailable:
		return true
	}
	return false
}

// storeByTurn says something worth keeping in a turn, and waits until the hook that
// listens behind it has kept it.
func storeByTurn(ctx context.Context, eng *runtime.Engine, name string, n int, states <-chan string) error {
	said := "Please remember that " + factByTurn(name, n) + "."
	turn, err := eng.BeginTurn(ctx, phases.Context{WorkspaceID: "w", ThreadID: name, TurnID: strconv.Itoa(n), Mode: phases.ModeAgent})
	if err != nil {
		return err
	}
	for decided := false; !decided; { // where the plugin was killed it is asked again
		out, err := turn.Dispatch(ctx, &phases.PrePolicyInput{UserText: phases.T(said)})
		if err != nil && phases.CodeOf(err) != phases.CauseRequiredMissing {
			return err
		}
		if decided = err == nil && len(out.Merged.Policies) == 1; !decided {
			<-time.After(10 * time.Millisecond) // a turn's ledger has an end
		}
	}
	if _, err := turn.End(ctx, &phases.PostTurnInput{Status: phases.TurnSucceeded, UserText: phases.NewPreview(said, phases.MaxTurnText)}); err != nil {
		return err
	}
	for state := range states {
		switch jobs.Action(state) {
		case jobs.Done:
			return nil
		case jobs.Discard:
			return fmt.Errorf("turn %d was given up", n)
		case jobs.Retry, jobs.Requeue:
		}
	}
	return nil
}

// Package runtime is the engine: it starts plugins, dispatches phases to them, merges what they contribute, and
// compiles prompts with their manifests.
//
// # For hosts
//
// A host makes one [Engine]. Package loop is the rest of it for most: it has the turn's phases, tools, reminders and end
// in the right order. What it does with a [Turn]:
//
//	eng, err := runtime.Load(ctx, "grapnel.yaml", runtime.Options{Builtins: …})
//	defer eng.Close(ctx)
//
//	turn, err := eng.BeginTurn(ctx, phases.Context{WorkspaceID: "w", ThreadID: "t", TurnID: "1", Dir: dir})
//	out, err := turn.Dispatch(ctx, &phases.PrePolicyInput{UserText: phases.T(text)})
//	…
//	done, err := turn.Compile(ctx, runtime.CompileInput{…})
//	in, err := turn.Dispatch(ctx, &phases.ToolPreCallInput{Tool: name, Arguments: args})
//	res, err := turn.CallTool(ctx, phases.ToolCall{Tool: name, Arguments: args})
//	…
//	_, err = turn.End(ctx, &phases.PostTurnInput{Status: phases.TurnSucceeded})
//
// or, for the prompt alone, calls [Engine.CompileTurn]. Plugins are written with package sdk; package phases owns the
// types that both sides share.
//
// # The layers
//
// The files stand in three layers, and each uses what is below it. The engine (start.go, load.go, turn.go, compile.go,
// …, [Engine]) knows configurations, turns and sessions. A dispatcher (dispatch.go, finish.go, settle.go, policy.go,
// call.go, course.go) runs a phase. An invoker (tool.go, invoke.go) makes one call of a plugin; exchange.go, runs.go and
// events.go report what came of it.
//
// # How a phase runs
//
// Every phase takes one path, in dispatch.go: conditions, then stages (transform, contribute, validate, observe), in
// each the layers of dependencies, and in each layer all hooks at the same time, bounded by each plugin's slots. A
// hook gets the least of its own timeout, what is left of the phase and of the turn, and the caller's deadline; then
// the caller goes on, whatever the plugin does. Answers are checked one by one (internal/engine/merge.Admit) and merged in
// plan order. Each expected hook has a row in the ledger, whether or not it ran, and each failure that did not stop
// its phase leaves a fail_open diagnostic.
//
// # Instances, incarnations, generations
//
// A declared plugin is an instance: a supervisor starts it, restarts it with backoff, and quarantines it for reasons
// that no restart cures. A start of it is an incarnation. A loaded configuration is a generation; a turn ends on the
// one that it began with, and Reload keeps the processes whose declaration did not change.
//
// # Background work
//
// Hooks that observe and background_job contributions are put into Options.Queue and done when the turn goes on
// (background.go). The default queue is in memory. One in the store's database outlives the process, and engines
// share it:
//
//	st, err := store.Open(ctx, dsn, store.Options{})
//	q, err := st.Queue(store.QueueOptions{})
//	eng, err := runtime.Load(ctx, "grapnel.yaml", runtime.Options{Sink: st, State: st, Queue: q, …})
//	…
//	eng.Close(ctx); st.Close()
//
// Interrupted work is done again only if that is declared harmless: a hook by Idempotent, a job of a tool by its
// idempotency key, a handler of the host's ([Options].Jobs) always. The start of all other work is recorded in the
// queue first ([Attempt]); it is discarded if nobody knows how it ended.
//
// # Manifests
//
// Each compiled turn, also a blocked one, has a manifest. Options.Sink keeps it, with the texts of the prompt if the
// operator wants that, and what the provider reports afterwards ([Turn.ReportUsage]). No call of the sink holds up a
// turn for longer than half a second; what was not kept is an event, a diagnostic or an error, and counted
// ([Engine.Stats]). The thread's previous manifest predicts the provider's prompt cache.
//
// Stability: experimental until 1.0.
package runtime

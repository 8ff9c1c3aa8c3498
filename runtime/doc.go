// Package runtime is the engine: it starts plugins, dispatches phases to them,
// merges what they contribute, and compiles prompts with their manifests.
//
// # For hosts
//
// A host makes one [Engine] and, per turn, one [Turn]:
//
//	eng, err := runtime.Load(ctx, "grapnel.yaml", runtime.Options{Builtins: …})
//	defer eng.Close(ctx)
//
//	turn, err := eng.BeginTurn(ctx, phases.Turn{WorkspaceID: "w", ThreadID: "t", TurnID: "1", Dir: dir})
//	out, err := turn.PrePolicy(ctx, &phases.PrePolicyInput{UserText: phases.T(text)})
//	…
//	done, err := turn.Compile(ctx, runtime.CompileInput{…})
//	res, err := turn.CallTool(ctx, phases.ToolCall{Tool: name, Arguments: args})
//	…
//	_, err = turn.End(ctx, &phases.PostTurnInput{Status: phases.TurnSucceeded})
//
// or, for the prompt alone, calls [Engine.CompileTurn]. Do not use the package to
// write a plugin: that is package sdk, and neither knows the other. Both know
// package phases, which owns the types of every signature.
//
// # How a phase runs
//
// There is one path for every phase, in dispatch.go: conditions, then stages
// (transform, contribute, validate, observe), in each the layers of its
// dependencies, in each layer all hooks at the same time, bounded by each
// plugin's slots. A hook gets the least of its own time, what is left of the
// phase, what is left of the turn, and the caller's deadline; at the deadline
// the caller goes on, whatever the plugin does. Answers are checked one by one
// (internal/merge.Admit) and merged in plan order, never in order of completion.
// Each expected hook has a row in the ledger, whether or not it ran, and each
// failure that did not stop its phase leaves a fail_open diagnostic.
//
// # What is kept alive
//
// A declared plugin is an instance: a supervisor that starts it, restarts it
// with backoff, and gives up on it (quarantine) for reasons that no restart
// cures. A start of it is an incarnation; answers are fenced by its number. A
// loaded configuration is a generation; a turn ends on the one that it began
// with, and Reload keeps the processes whose declaration did not change.
//
// # What is done later
//
// Hooks that observe and background_job contributions are put into Options.Queue
// and done when the turn goes on (work.go). Without one they are in memory. One in
// the store's database outlives the process, and engines share it:
//
//	st, err := store.Open(ctx, dsn, store.Options{})
//	q, err := jobqueue.Open(ctx, st.DB(), jobqueue.Options{})
//	eng, err := runtime.Load(ctx, "grapnel.yaml", runtime.Options{Sink: st, State: st, Queue: q, …})
//	…
//	eng.Close(ctx); q.Close(); st.Close()
//
// What was interrupted is repeated only where it says that this does no harm: a
// hook by Idempotent, a job of a tool by its idempotency key, a handler of the
// host's ([Options].Jobs) always. All else is told to the queue right before it
// begins ([Attempt]), and is dead when nobody can tell how it ended.
//
// # What is recorded
//
// Each compiled turn gives a manifest, also one that is blocked. Options.Sink
// keeps it, with the texts of the prompt where the operator wants that, and what
// the provider reports afterwards ([Turn.ReportUsage]). The sink is called on
// goroutines of the engine's own, because a disk may hang: no call holds a turn up
// for longer than half a second, and what was not kept is an event, a diagnostic
// or an error, and counted ([Engine.Stats]). The thread's previous manifest, out
// of memory or from the sink, tells what the provider's prompt cache should have.
//
// Stability: experimental until 1.0.
package runtime

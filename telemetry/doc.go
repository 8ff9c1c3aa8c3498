// Package telemetry exports the runs of a runtime.Engine as OpenTelemetry spans, and its counters and durations as
// metrics. It links the OpenTelemetry API only; the host chooses the SDK, and there are no globals.
//
//	tel, err := telemetry.New(telemetry.Options{TracerProvider: tracers, MeterProvider: meters})
//	eng, err := runtime.Load(ctx, "grapnel.yaml", tel.Attach(runtime.Options{…}))
//	err = tel.Watch(eng)
//	…
//	err = eng.Close(ctx)
//	err = tel.Close()
//
// One Telemetry serves one engine.
//
// # What is never exported
//
// Content: no text of a prompt, contribution, document or reminder, no argument or result of a tool, no policy's
// value, no message of an error, no log line, no plugin's own error code, no id of a workspace, turn or user, and no
// hash of any of these. The ids of threads and agents are in spans of records alone, and [Options].OmitIDs keeps them
// out. Exported are names of the operator's configuration and of described plugins (plugins,
// hooks, tools that were called), versions of plugins, words of closed lists (phases, states, causes, limits), and
// numbers. A word that is not in its list is exported as "_OTHER"; a name that does not look like one is omitted. In
// a turn, a tool has a name only if a plugin offers it; outside of one (runtime.Engine.CallTool) the host names the
// tool, and should not let a model do so.
//
// # Spans
//
// Each run of the ledger has a span:
//
//	run                    span name                  further attributes
//	a hook                 execute_hook {phase}
//	a call of a tool       execute_tool {tool}        gen_ai.operation.name, gen_ai.tool.name
//	a call of the model    host_call {service.method} gen_ai.response.model, gen_ai.usage.input_tokens, …output_tokens
//
// All have the kind internal and these attributes, those without a value omitted:
//
//	grapnel.plugin           the plugin's declared name
//	grapnel.plugin.version   as it describes itself
//	grapnel.subscription     the full id of the hook, for a call of the model of its caller
//	grapnel.phase            the phase, tool.call or host.call
//	grapnel.stage            transform, contribute, validate, observe, tool or host
//	grapnel.generation       of the configuration
//	grapnel.incarnation      of the plugin's process
//	grapnel.state            of the run in the ledger
//	grapnel.cause            of the state
//	grapnel.attempts         how many there were
//	grapnel.queue.duration   seconds of waiting for a slot
//	grapnel.request.size     bytes to the plugin; absent in process
//	grapnel.reply.size       bytes from it; absent in process
//	grapnel.contributions    how many were kept
//	grapnel.cuts             how many of them were cut
//	grapnel.decision_ref     of a hook that decided and of a call of a tool: the prompt in force, as MANIFESTID/SEQ
//	grapnel.manifest.id      the same prompt's record
//	error.type               the cause of a failure
//
// A failure gives the span the status error, with the cause as its description. Denied and cancelled runs are not
// errors. Hooks that were filtered, are off, or were queued have no span unless [Options].AllRuns asks for it; a
// queued one gets its span when it runs. A cached answer is a span of no length.
//
// With a sink there are two more, which join traces with the log:
//
//	keep_manifest   grapnel.manifest.id, grapnel.manifest.kind, gen_ai.conversation.id (the thread), gen_ai.agent.id,
//	                gen_ai.provider.name, gen_ai.request.model
//	report_usage    grapnel.manifest.id, gen_ai.usage.input_tokens, …output_tokens, …cache_read.input_tokens,
//	                …cache_creation.input_tokens
//
// The host's own span of its request to the provider gets the first ones with [Telemetry.Attributes]. The names that
// begin with gen_ai. are those of https://github.com/open-telemetry/semantic-conventions-genai (docs/registry), which are
// in development.
//
// A span's parent is the span of the host's context, or of the hook or tool that made the call; of a queued hook or a
// job, the trace that queued it. It begins before the wait for a slot and ends with the last attempt. The plugin gets
// its trace context (Trace in its call); plugins in process and the host's model get a context with it.
//
// # Metrics
//
// The attributes are those of the spans.
//
//	instrument                    kind             unit        attributes
//	grapnel.dispatch.duration     histogram        s           phase, state, error.type
//	grapnel.run.count             counter          {run}       plugin, subscription, phase, state, error.type
//	grapnel.plugin.call.duration  histogram        s           plugin, subscription, phase, state
//	grapnel.plugin.queue.duration histogram        s           plugin, phase
//	grapnel.host.call.duration    histogram        s           plugin, state
//	grapnel.reply.size            histogram        By          plugin, phase
//	grapnel.fail_open             counter          {failure}   plugin, subscription, phase, error.type
//	grapnel.condition.errors      counter          {error}     plugin, subscription, phase
//	grapnel.conflicts             counter          {conflict}  plugin, subscription, phase
//	grapnel.truncations           counter          {cut}       plugin, phase, limit
//	grapnel.calls.abandoned       counter          {call}      plugin
//	grapnel.log.dropped           counter          {line}      plugin
//	grapnel.answers.dropped       counter          {answer}    plugin, reason
//	grapnel.job.changes           counter          {change}    plugin, state
//	grapnel.reloads               counter          {reload}    state
//	grapnel.manifest.issues       counter          {issue}     state
//	grapnel.plugin.up             up-down counter  1           plugin
//	grapnel.plugin.restarts       counter          {restart}   plugin
//	grapnel.breaker.state         up-down counter  1           plugin, subscription, state
//	grapnel.plugin.memory         up-down counter  By          plugin
//
// grapnel.dispatch.duration is the wall time of a phase, from the host's call to the outcome. grapnel.run.count has
// every expected hook, also those that did not run. Calls have the duration of all attempts together; queues include
// calls that found no slot. Sizes are of processes only. grapnel.plugin.up is 1 for a plugin that is ready or
// degraded. grapnel.breaker.state is 1 for the breaker's current state and 0 for the others, for subscriptions that
// have failed before. grapnel.plugin.memory covers the process and its descendants, as of about the last second.
// These three, restarts, abandoned calls, dropped log lines, job changes and reloads (after the first configuration)
// are the engine's own counters and need [Telemetry.Watch]. Restarts begin at 0 when a reload replaces a plugin.
//
// Attributes are names of the configuration and its plugins (at most 256 hooks each) and words of closed lists, never
// a model's. Beyond [Options].MaxSeries combinations, plugins and subscriptions are called "_OTHER".
//
// Stability: experimental until 1.0.
package telemetry

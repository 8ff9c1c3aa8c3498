// Package telemetry makes OpenTelemetry spans and metrics of what a runtime.Engine
// tells. It is one consumer of the engine's events; the engine knows nothing of it.
//
// It links the OpenTelemetry API only. Which SDK stands behind the providers, where
// it exports to, and how much it samples is the host's business; there are no
// globals. It is not for the gateway's own numbers (connections, calls), which
// Prometheus reads at /metrics, and not a log.
//
// # For hosts
//
//	tel, err := telemetry.New(telemetry.Options{TracerProvider: tracers, MeterProvider: meters})
//	eng, err := runtime.Load(ctx, "grapnel.yaml", tel.Attach(runtime.Options{…}))
//	err = tel.Watch(eng)
//	…
//	err = eng.Close(ctx)
//	err = tel.Close()
//
// [Telemetry.Attach] is what takes events; [Telemetry.Watch] adds what is looked up
// when metrics are collected. One Telemetry serves one engine.
//
// # What is never exported
//
// Content. No text of a prompt, contribution, document or reminder, no argument or
// result of a tool, no policy's value, no message of an error, no log line, no
// plugin's own error code, no id of a workspace, thread, turn or user, and no hash
// of any of these. What is exported is: names that the operator's configuration and
// the described plugins gave (plugins, hooks, tools that were called), a plugin's
// version, the words of closed lists (phases, states, causes, limits), and numbers.
// A word that is not in its list is exported as "_OTHER"; a name that does not look
// like one is left out. In a turn, a tool has a name only if a plugin has brought it;
// outside of one (runtime.Engine.CallTool) the host says what is called, and should
// not let a model say it.
//
// # Spans
//
// One span a run of the ledger, by what it is a run of:
//
//	run                    span name                  further attributes
//	a hook                 execute_hook {phase}
//	a call of a tool       execute_tool {tool}        gen_ai.operation.name, gen_ai.tool.name
//	a call of the model    host_call {service.method} gen_ai.response.model, gen_ai.usage.input_tokens, …output_tokens
//
// All have the kind internal and these attributes, those without a value left out:
//
//	grapnel.plugin           the plugin's declared name
//	grapnel.plugin.version   as it describes itself
//	grapnel.subscription     the hook's full id; of a call of the model, that of the hook or tool that made it
//	grapnel.phase            the phase, tool.call or host.call
//	grapnel.stage            transform, contribute, validate, observe, tool or host
//	grapnel.generation       of the configuration
//	grapnel.incarnation      of the plugin's process
//	grapnel.state            the ledger's word for what became of it
//	grapnel.cause            why, where there is something to say
//	grapnel.attempts         how often it was tried
//	grapnel.queue.duration   seconds of waiting for a slot
//	grapnel.request.size     bytes to the plugin; absent in process
//	grapnel.reply.size       bytes from it; absent in process
//	grapnel.contributions    how many were kept
//	grapnel.cuts             how many of them were cut
//	error.type               the cause, where it is a failure
//
// A failure also gives the span the status error, with the cause as its description.
// A denial is a decision, and what a caller cancels is nobody's failure: neither is
// an error. Hooks that were filtered, are off, or were put into the queue did not
// run, and have no span unless [Options].AllRuns asks for it; a queued one gets its
// span when it runs. An answer from memory is a span of no length with the state
// cached.
//
// A span stands under the one that the host's context carries, or that of the hook or
// tool in whose course it happened; a queued hook and a job under the trace of who
// queued it. It begins before the wait for a slot and ends with the last attempt. The
// plugin is told of it (Trace in its call), and what a plugin inside the host, or the
// host's model, starts with the context that it is given is below it.
//
// # Metrics
//
// The attributes are those of the spans. Durations are in seconds, as OpenTelemetry's
// conventions ask.
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
//	grapnel.manifest.troubles     counter          {trouble}   state
//	grapnel.plugin.up             up-down counter  1           plugin
//	grapnel.plugin.restarts       counter          {restart}   plugin
//	grapnel.breaker.state         up-down counter  1           plugin, subscription, state
//	grapnel.plugin.memory         up-down counter  By          plugin
//
// grapnel.dispatch.duration is the wall time of a phase, from the call of the host to
// the outcome, and grapnel.run.count has every expected hook, also those that did not run. The call's
// duration is that of runs in which the plugin was asked, all attempts together; the
// queue's, what these and those that found no slot have waited. Sizes are those of
// processes: inside the host nothing is encoded. grapnel.plugin.up is 1 for a plugin
// that is ready or degraded and 0 for one that is not; grapnel.breaker.state is 1 for
// the state that a breaker is in and 0 for the others, of breakers that have ever
// changed theirs. grapnel.plugin.memory is what its process and the descendants of that
// hold, as the engine saw it within the last second or so; plugins inside the host have
// none. These and the restarts need [Telemetry.Watch].
//
// # How many series there can be
//
// Names come from the configuration and from what its plugins describe (256 hooks
// each at most), causes and states from closed lists. What a model makes up, such as
// the name of a tool that there is not, is no attribute of any metric. Beyond
// [Options].MaxSeries combinations, plugins and subscriptions are called "_OTHER",
// so that a plugin which describes itself anew at each reload fills nobody's
// database.
//
// Stability: experimental until 1.0.
package telemetry

package config

import (
	"math"

	"github.com/grapnelhq/grapnel/internal/lazyregexp"
	"github.com/grapnelhq/grapnel/phases"
)

// rule is what a key accepts beside its Go type. The decoder checks it and the schema shows it.
type rule struct {
	doc       string   // one line for people
	words     []string // the values of a text; nil for any
	pattern   string   // a regular expression for editors of what other code checks; for a list, of its entries
	bounded   bool     // bounded numbers lie between low and high inclusive, in nanoseconds or bytes
	low, high int64
	required  bool
	object    bool // JSON that must be an object and may hold secrets
}

func about(doc string) rule { return rule{doc: doc} }

func oneOf(doc string, words ...string) rule { return rule{doc: doc, words: words} }

func needed(doc string) rule { return rule{doc: doc, required: true} }

func atLeast(low int64, doc string) rule { return between(low, math.MaxInt64, doc) }

func between(low, high int64, doc string) rule {
	return rule{doc: doc, bounded: true, low: low, high: high}
}

// Patterns of checksums and network grants.
const (
	hexPattern = "^[0-9a-fA-F]{64}$"
	netPattern = `^(\*|(\*|listen):[1-9][0-9]{0,4})$`
)

var checksum = lazyregexp.New(hexPattern)

// keyRules are the rules of all keys, "STRUCT.KEY" by the names of the Go types.
//
//nolint:gochecknoglobals // a table
var keyRules = map[string]rule{
	"Config.version":  {doc: "The schema of this file: `1`. Default: required.", bounded: true, low: 1, high: 1, required: true},
	"Config.budgets":  about("Bounds of turns and phases."),
	"Config.plugins":  about("The plugins. Their order has no meaning. Default: none."),
	"Config.pin":      oneOf("`required`: a command without `sha256` is an error.", "required"),
	"Config.store":    {doc: "Where manifests are kept: `sqlite:PATH`, relative to this file's directory, or `postgres://…`. Without it nothing is kept. `--store` takes precedence. Default: none.", pattern: `^(sqlite:.+|postgres(ql)?://.+|\$\{[A-Za-z_][A-Za-z0-9_]*\})$`},
	"Config.manifest": about("How manifests are made."),
	"Config.serve":    about("What the gateway allows its clients."),

	"Serve.turn_idle": atLeast(1, "How long a turn that a client has begun (`turn/begin`) is kept without a call before it ends as interrupted. Default: `10m`."),
	"Serve.turns":     between(1, maxTurns, "How many such turns are kept at a time; a token may have half of them. Default: `1024`."),

	"Serve.roots":   about("Absolute paths of directories: the working directory of a client's turn must lie in one of them, symlinks followed. The widest one that contains it is the turn's `dir_root`, which Grapnel's own plugins do not leave. Default: none; any directory for a gateway that listens at a socket alone with the token that it made."),
	"Serve.hosts":   about("Names, without ports, under which the gateway may be reached beside those of loopback. Requests for other names are refused, so that a web page cannot reach it under its own name. Default: none."),
	"Serve.origins": about("Origins of web pages that may call the gateway beside its own, such as `https://example.org`. Default: none."),
	"Serve.watch":   about("Reloads the configuration and the token file when they change, as SIGHUP does: OPERATING.md. Default: `false`."),

	"Serve.conversations":          about("Conversations that the gateway keeps for its clients: GATEWAY.md."),
	"Conversations.workspaces":     about("Ids of the workspaces whose conversations are kept, or `'*'` for all. Default: none."),
	"Conversations.context_tokens": between(1, maxContext, "How many tokens the model reads: prompt, tools, conversation and response. Default: `128000`."),
	"Conversations.reserve_tokens": between(1, maxContext, "How many of them are kept free for the response. Default: `16000`."),
	"Conversations.max_entries":    between(1, maxWindow, "How many entries of the past are sent at most. Default: `200`."),

	"Budgets.turn":        about("Bounds of one turn."),
	"Budgets.phases":      about("Bounds of single phases, by the phase's name."),
	"TurnBudget.time":     atLeast(1, "Wall time of all blocking phases of a turn together. The host's own work, `tool.*`, `turn.pre_end`, compaction and session phases do not count. Default: `10s`."),
	"TurnBudget.chars":    atLeast(0, "Text of all hook sections of a phase together, in Unicode characters; 0 is the default. Default: `64000`."),
	"PhaseBudget.time":    atLeast(1, "Wall time of all hooks of one dispatch. Default: by phase."),
	"PhaseBudget.require": about("Subscriptions that must complete (succeeded, denied or cached), or the phase fails closed with `required_missing`, also if the plugin did not start. Background work (hooks of `turn.post_turn` and `session.end`, observers) never completes in its phase: naming it is an error. Default: none."),

	"Manifest.keep_text":       about("Keeps the texts of prompts and reminders, and the arguments of tool calls, in the store, beside the manifests, each section once: `grapnel manifest show --text` shows them. Default: `false`."),
	"Manifest.fingerprint_key": about("Keys hashes and fingerprints, so that short texts cannot be guessed from them. Default: none."),
	"Manifest.chain_key":       about("Keys the hashes of kept manifests: nobody without it can forge the log, and `grapnel manifest verify` needs it. Manifests from before there was a key stay valid in front of the others; a log that has used a key needs it for ever. Default: none."),
	"Manifest.labels":          oneOf("`hash`: manifests have hashes of titles, labels, messages and paths instead of the texts. Default: `full`.", "full", "hash"),
	"Manifest.on_failure":      oneOf("What a turn does if its manifest cannot be kept. `warn`: it continues, and the loss is logged, counted and in its diagnostics (`manifest_not_kept`). `refuse`: there is no prompt. Default: `warn`.", "warn", "refuse"),

	"Manifest.retention": about("What `grapnel manifest prune` takes away when it is given no rule: what is older, or not among the newest so many of its thread."),

	"Retention.older":          atLeast(1, "Takes away what is older, such as `2160h`. Default: nothing."),
	"Retention.keep":           atLeast(1, "Takes away what is not among the newest so many of its thread. Default: nothing."),
	"Retention.workspaces":     about("Rules of single workspaces, by id, in place of those for all: `{}` keeps everything. Default: none."),
	"WorkspaceRetention.older": atLeast(1, "The same for the workspace. Default: nothing."),
	"WorkspaceRetention.keep":  atLeast(1, "The same for the workspace. Default: nothing."),

	"Plugin.name":          {doc: "Unique; subscriptions are `NAME.HOOK`. Default: required.", pattern: "^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$", required: true},
	"Plugin.builtin":       about("A plugin of the program: `agentsdoc`, `commandhooks` (BRIDGES.md), `mcp` (MCP.md), `memory` (MEMORY.md), `scripted`, `skills` (SKILLS.md)."),
	"Plugin.command":       about("A program: an absolute path, a path relative to this file's directory, or a bare name that is looked up once in the absolute directories of `PATH`. `builtin` or `command`, or neither for a plugin that the host runs in process."),
	"Plugin.args":          about("Its arguments. All users of the machine can see them: no secrets. Default: none."),
	"Plugin.sha256":        {doc: "Its checksum in hex; another program is refused (`checksum_mismatch`). `grapnel plugin pin` writes it. Without it the plugin runs, and records have the checksum of what ran.", pattern: hexPattern},
	"Plugin.pins":          about("Checksums of further files by absolute path, such as an interpreter's script; `grapnel plugin pin --write` writes them. Default: none."),
	"Plugin.unsafe_path":   about("Accepts a program that others may replace, because it or its parent directory is writable for others. Otherwise the plugin fails with `unsafe_path`. Default: `false`."),
	"Plugin.grants":        about("What it may do; nothing by default."),
	"Plugin.env":           about("The plugin's environment."),
	"Plugin.limits":        about("Bounds of the plugin."),
	"Plugin.sandbox":       oneOf("How its process is confined: `T0`, its own process group and directory, a clean environment, no core dumps; `T1`, also only what `read`, `write` and `net` grant, resource limits, no new privileges; `T2`, also a control group. Grants of single places imply `T1`. A tier that this machine cannot provide is an error at load: SECURITY.md. Default: `T0`.", "T2", "T1", "T0"),
	"Plugin.tls":           about("Host and plugin authenticate each other with certificates, for some 20 ms a start; always on Windows: SECURITY.md. Default: `false`."),
	"Plugin.transport":     oneOf("How a command speaks with the host: `grpc`, or `stdio`, frames as JSON on standard input and output, one a line (Unix systems): WIRE.md. Default: `grpc`.", "grpc", "stdio"),
	"Plugin.reload":        oneOf("`exclusive`: at a reload the old process is stopped before the new one starts, for programs that cannot run twice.", "exclusive"),
	"Plugin.on_failure":    oneOf("What phases in which it may decide or rewrite (`grants.contribute`) do as long as its hooks are not known, because it has not started. `fail_closed`: they wait for it within their time, and then fail closed. `fail_open`: they go on without it, with a `fail_open` mark. A guard that is declared under `subscriptions`, with its `phase`, replaces this rule. Default: `fail_closed`.", "fail_closed", FailOpen),
	"Plugin.subscriptions": about("What the operator changes about its hooks, by full id. Default: none."),
	"Plugin.config":        {doc: "The plugin's own configuration, checked against the plugin's schema. Default: none.", object: true},

	"Env.pass": about("Variables of the host that are passed on, if set. Nothing else of the host's environment reaches a plugin, not even `PATH` and `HOME`. Default: none."),
	"Env.set":  about("Variables with values. Default: none."),

	"Limits.memory":      atLeast(1, "Resident memory of its process and all its descendants, with memfds, open files in memory and unmapped System V segments. A plugin with more is killed, with the cause `oom` and a longer wait before the next start. Without a control group (`sandbox: T2`) it is measured once a second. Default: unbounded."),
	"Limits.concurrency": between(1, maxConcurrency, "Calls at once; others wait, within the phase's time. Default: `32`."),
	"Limits.frame":       between(minFrame, MaxFrame, "The largest message either way; 1KiB to 16MiB. Default: `4MiB`."),
	"Limits.start":       atLeast(1, "Time from the start of the program until it has accepted its configuration. Default: `10s`."),
	"Limits.tool":        atLeast(1, "Time for one call of a tool, including the wait for the plugin; the host may end it earlier. Default: `60s`."),
	"Limits.recycle":     about("Replaces its process from time to time, for programs that leak. The successor starts while the old one serves."),
	"Limits.model":       about("Bounds of its calls of the host service model."),

	"Recycle.age":   atLeast(1, "How long a healthy process runs before it is replaced, for programs that leak. The successor starts while the old one serves; then it gets the new calls, and the old one ends after its last call. If the successor does not start, the old one stays (`degraded`, with the reason), and another attempt follows later. None of this counts as a failure. Up to a fifth is subtracted at random, so that not all plugins are replaced at once. With `reload: exclusive` the old one is stopped first."),
	"Recycle.calls": atLeast(1, "The same after this many calls of hooks and tools."),

	"ModelBudget.calls":         atLeast(1, "Calls of the host service `model` in one turn, or in one dispatch, tool call or background job outside of any. Default: `4`."),
	"ModelBudget.output_tokens": atLeast(1, "Output tokens of these calls together. A call without reported usage counts with all that was reserved for it. Default: `4000`."),
	"ModelBudget.time":          atLeast(1, "Time for one of these calls, which also ends with the hook that makes it. Default: `20s`."),

	"Grants.contribute":      about("Kinds of contributions. A hook that declares a kind without this grant is off (`not_granted`). `manifest_diagnostic` and `noop` need none."),
	"Grants.sections":        about("Section ids that it may write."),
	"Grants.stable_sections": about("Section ids that it may write into the stable part of the prompt."),
	"Grants.join":            about("Section ids of other plugins that it may add to."),
	"Grants.policies":        about("Policies that it may set: `domain/key`, `domain/*`."),
	"Grants.domains":         about("Domains that its contributions may name. One that names none needs no grant."),
	"Grants.tools":           about("Tools that it may offer and answer. `request_tools` is the engine's own, whatever is granted."),
	"Grants.host":            about("Host services that it may call (`state`), or single methods of them (`model.complete`). Asking the host's model costs money: `limits.model` bounds it."),
	"Grants.read":            about("Files, and directories with everything below them, that it may read and execute: `/srv/docs`, `/srv/docs/*` (the same), `./docs` in this file's directory, `*` for everything. A path that does not exist when the process starts is not granted, and reported (`sandbox_partial`). A path that covers the `store` causes a warning (`store_exposed`)."),
	"Grants.write":           about("Files and directories that it may also change."),
	"Grants.net":             {doc: "`*:443`, a TCP port to connect to, on any machine; `listen:8080`, one to listen on; `*`, everything but unix sockets of other programs, which no entry grants. The name of a machine is an error, because no system can enforce it.", pattern: netPattern},
	"Grants.see":             about("Input fields that it receives, by JSON name (`user_text`, `arguments`, …), and `metadata`, `policy`, `context`. Others arrive as `{\"withheld\": true, \"chars\": N}`, or empty. Phase, ids, mode, directory, clock and a tool's name are always sent. A hook declares what it needs to see (`needs`)."),

	"Override.enabled":       about("`false` turns it off. Default: `true`."),
	"Override.phase":         about("States where it is expected, also if the plugin does not start. Default: the plugin's."),
	"Override.kinds":         about("Kinds that it may answer with. Default: the plugin's."),
	"Override.role":          about("`transform`, `contribute`, `validate` or `observe`. Default: `contribute`; `transform` for hooks that rewrite."),
	"Override.priority":      about("Higher is more important: earlier in order, kept first under a budget, stronger in a conflict. Default: `0`."),
	"Override.after":         about("Full ids of subscriptions that it runs after; one that ends in `?` may be absent. Only the order depends on them. Default: none."),
	"Override.before":        about("Full ids of subscriptions that it runs before; one that ends in `?` may be absent. Only the order depends on them. Default: none."),
	"Override.when":          about("A condition: an expression that gives true or false. Default: always."),
	"Override.timeout":       atLeast(1, "Time for one call. More than the phase's time is an error here, and lowered if the plugin proposed it. Default: the lesser of `1s` and the phase's time; `30s` in background phases."),
	"Override.on_failure":    about("What a failure does: a word (`fail_closed`, `best_effort`, `fallback`), or words by cause. Default: `best_effort`; `fail_closed` for validators and hooks that decide, except at `turn.pre_end`."),
	"Override.fallback":      about("Contributions for `on_failure: fallback`, checked like real ones. Default: none."),
	"Override.retry":         about("Repeats a failed call; only for hooks that declare themselves idempotent."),
	"Override.budget":        about("Bounds the hook's text."),
	"Override.cache":         about("Lets the engine reuse an answer."),
	"Override.shadow":        about("Runs it and records what it would have done, but applies nothing. Default: `false`."),
	"Override.visibility":    about("Who, beside readers of the log, sees those of its messages that their author calls safe: nobody (`internal`), the command line and administrators (`debug`), also readers of manifests (`user_audit`), all callers (`user_visible`). Default: `internal`."),
	"Override.without_needs": about("`off`: a hook that decides without seeing what it needs is turned off, with a `fail_open` mark in every turn. Otherwise that is an error at load."),

	"Retry.attempts":    between(0, maxAttempts, "Calls in all, the first included; only for hooks that declare themselves idempotent. Default: none."),
	"Retry.backoff":     atLeast(0, "Pause before the second call. Default: none."),
	"TextBudget.chars":  atLeast(0, "Characters that are kept of its text, including frame and marker; 0 is no bound, also if its plugin proposes one. Default: none."),
	"TextBudget.tokens": atLeast(0, "Tokens that are kept of its text; needs a host that counts them. 0 is no bound. Default: none."),
	"Cache.ttl":         atLeast(0, "How long the engine may reuse an answer. Default: none."),
	"Cache.vary":        about("Context and input fields on which the answer depends, such as `dir` or `input.tool`. Default: none."),
	"Cache.tags":        about("Names under which the plugin may invalidate the answer. Default: none."),

	"Common.contribution_id": about("The plugin's own id of the contribution."),
	"Common.domain":          about("The area that the contribution speaks for."),
	"Common.priority":        about("Ranks contributions behind the subscription's priority."),
	"Common.diagnostics":     about("Remarks about the contribution."),

	"Diagnostic.code":               about("A stable word."),
	"Diagnostic.severity":           about("How bad it is."),
	"Diagnostic.message":            about("One sentence for people."),
	"Diagnostic.cause":              about("Filled in by the engine."),
	"Diagnostic.plugin":             about("Filled in by the engine."),
	"Diagnostic.subscription":       about("Filled in by the engine."),
	"Diagnostic.other_subscription": about("Filled in by the engine."),
	"Diagnostic.slot":               about("Filled in by the engine."),

	"PromptContext.content":     needed("The text."),
	"PromptContext.max_chars":   atLeast(0, "Bounds the text."),
	"PromptContext.source_refs": about("Where the text came from."),
	"PromptContext.render":      about("false hands the text to later hooks only."),
	"PromptSection.section_id":  needed("The section's id."),
	"PromptSection.title":       about("The section's heading."),
	"PromptSection.stability":   about("How often the text changes; dynamic by default."),
	"PromptSection.placement":   about("Where the section goes; system by default."),
	"PromptSection.content":     needed("The text."),
	"PromptSection.frame":       about("Text around the body that survives every cut."),
	"PromptSection.max_chars":   atLeast(0, "Bounds frame, body and marker."),
	"PromptSection.source_refs": about("Where the text came from."),
	"PromptSection.cut":         about("What the plugin has already cut."),
	"SourceRef.kind":            {doc: "What it is.", words: phases.SourceKinds(), required: true},
	"SourceRef.id":              about("Its id."),
	"SourceRef.label":           about("Its name for people."),
	"SourceRef.hash":            about("Which content it was, such as `sha256:…`."),
	"Frame.open":                about("The text before the body."),
	"Frame.close":               about("The text behind the body."),
	"SelfCut.original":          atLeast(0, "The original length in characters."),
	"SelfCut.kept":              atLeast(0, "The length that was kept."),

	"Policy.key":                       needed("The policy's key within its domain."),
	"Policy.value":                     needed("The policy's value, anything."),
	"ToolBundle.bundle_id":             needed("The bundle's id."),
	"ToolBundle.tools":                 about("The tools."),
	"Tool.name":                        needed("The tool's name."),
	"Tool.description":                 about("What the tool does, for the model."),
	"Tool.input_schema":                about("A JSON Schema of its arguments."),
	"Tool.hidden_domain":               about("Hides the tool behind a domain until it is asked for."),
	"Decision.verdict":                 needed("The answer: allow, ask or deny."),
	"Decision.reason":                  about("One sentence for people."),
	"Decision.reason_code":             about("A stable word."),
	"Rewrite.path":                     about("A JSON pointer into the arguments or the result."),
	"Rewrite.value":                    needed("The new value, anything."),
	"Reminder.type":                    needed("The reminder's type."),
	"Reminder.attributes":              about("Attributes of the reminder's tag."),
	"Reminder.text":                    needed("The text."),
	"Reminder.dedupe_key":              about("Delivers the reminder once per epoch under this key."),
	"ManifestDiagnostic.code":          needed("A stable word."),
	"ManifestDiagnostic.message":       about("One sentence for people."),
	"ManifestDiagnostic.severity":      about("How bad it is."),
	"ManifestDiagnostic.safe_for_user": about("Says that the message may leave the operator's log, as the hook's visibility has it."),
	"Audit.event_kind":                 needed("The kind of event."),
	"Audit.details":                    about("Anything."),
	"Audit.safe_for_user":              about("Says that the details may leave the operator's log, as the hook's visibility has it."),
	"BackgroundJob.job_kind":           needed("The kind of work."),
	"BackgroundJob.payload":            about("Anything."),
	"BackgroundJob.idempotency_key":    about("Ignores a second job with the same key."),
	"BackgroundJob.not_before":         about("The earliest time, as RFC 3339."),
}

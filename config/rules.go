package config

import (
	"math"

	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
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

// keyRules are the rules of all keys, "STRUCT.KEY" by the names of the Go types. Contributions have none here: package
// phases checks them.
//
//nolint:gochecknoglobals // a table
var keyRules = map[string]rule{
	"Config.version":  {doc: "The schema of this file: `1`. Default: required.", bounded: true, low: 1, high: 1, required: true},
	"Config.budgets":  about("Bounds of turns and phases."),
	"Config.plugins":  about("The plugins, in any order. Default: none."),
	"Config.pin":      oneOf("`required`: a command without `sha256` is an error.", "required"),
	"Config.store":    {doc: "Where manifests are kept: `sqlite:PATH`, relative to this file, or `postgres://…`; `--store` takes precedence. Default: none.", pattern: `^(sqlite:.+|postgres(ql)?://.+|\$\{[A-Za-z_][A-Za-z0-9_]*\})$`},
	"Config.manifest": about("How manifests are made."),
	"Config.serve":    about("What the gateway allows its clients."),

	"Serve.roots":     about("Directories, one of which must contain the working directory of a client's turn; the widest is its `dir_root`. Default: none; any directory on a socket with the gateway's own token."),
	"Serve.hosts":     about("Names for the gateway beside those of loopback, without ports. Default: none."),
	"Serve.origins":   about("Origins of other web pages that may call it: `https://example.org`. Default: none."),
	"Serve.turn_idle": atLeast(1, "A client's turn without a call ends after this time, as interrupted. Default: `10m`."),
	"Serve.turns":     between(1, maxTurns, "The most such turns; a token may have half of them. Default: `1024`."),
	"Serve.watch":     about("Reloads the configuration and the tokens when they change: OPERATING.md. Default: `false`."),

	"Serve.conversations":          about("Conversations that the gateway keeps for its clients: GATEWAY.md."),
	"Conversations.workspaces":     about("Workspaces whose conversations are kept, or `'*'` for all. Default: none."),
	"Conversations.context_tokens": between(1, maxContext, "Tokens of prompt, tools, conversation and response together. Default: `128000`."),
	"Conversations.reserve_tokens": between(1, maxContext, "Those kept free for the response. Default: `16000`."),
	"Conversations.max_entries":    between(1, maxWindow, "The most entries of the past that are sent. Default: `200`."),

	"Budgets.turn":        about("Bounds of one turn."),
	"Budgets.phases":      about("Bounds of single phases, by the phase's name."),
	"TurnBudget.time":     atLeast(1, "Wall time of a turn's blocking phases, except `tool.*`, `turn.pre_end`, compaction and session phases. Default: `10s`."),
	"TurnBudget.chars":    atLeast(0, "Characters of all hook sections of a phase together. Default: `64000`."),
	"PhaseBudget.time":    atLeast(1, "Wall time of all hooks of one dispatch. Default: by phase."),
	"PhaseBudget.require": about("Subscriptions that must complete, or the phase fails closed (`required_missing`); not background hooks. Default: none."),

	"Manifest.keep_text":       about("Keeps texts of prompts and reminders, and arguments and facts of tool calls. Default: `false`."),
	"Manifest.keep_inputs":     oneOf("`calls` keeps arguments, facts and results of tool calls, and prompts, with the secrets in them, to replay calls. Default: `off`.", "off", "calls"),
	"Manifest.fingerprint_key": about("Keys hashes and fingerprints against guessing of short texts. Default: none."),
	"Manifest.chain_key":       about("Keys the hashes of kept manifests against forgery. The log needs it for ever. Default: none."),
	"Manifest.labels":          oneOf("`hash`: hashes in place of titles, labels, messages and paths. Default: `full`.", "full", "hash"),
	"Manifest.on_failure":      oneOf("If a turn's manifest cannot be kept: `warn` continues (`manifest_not_kept`), `refuse` gives no prompt. Default: `warn`.", "warn", "refuse"),

	"Manifest.retention":       about("What `grapnel manifest prune` removes when it is given no rule."),
	"Retention.older":          atLeast(1, "Removes what is older, such as `2160h`. Default: nothing."),
	"Retention.keep":           atLeast(1, "Removes all but the newest so many of each thread. Default: nothing."),
	"Retention.workspaces":     about("Rules of single workspaces, by id, in place of those for all: `{}` keeps everything. Default: none."),
	"WorkspaceRetention.older": atLeast(1, "The same for one workspace. Default: nothing."),
	"WorkspaceRetention.keep":  atLeast(1, "The same for one workspace. Default: nothing."),

	"Plugin.name":          {doc: "Unique; subscriptions are `NAME.HOOK`. Default: required.", pattern: "^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$", required: true},
	"Plugin.builtin":       about("A built-in plugin (below). With neither `builtin` nor `command` the host runs the plugin."),
	"Plugin.command":       about("A program: a path, relative to this file, or a name to look up in `PATH`."),
	"Plugin.args":          about("Its arguments, which all users of the machine can see. Default: none."),
	"Plugin.sha256":        {doc: "Its checksum, written by `grapnel plugin pin`; another program is refused.", pattern: hexPattern},
	"Plugin.pins":          about("Checksums of further files, by absolute path. Default: none."),
	"Plugin.unsafe_path":   about("Accepts a program that others may replace. Default: `false`."),
	"Plugin.grants":        about("What it may do; nothing by default."),
	"Plugin.env":           about("The plugin's environment."),
	"Plugin.limits":        about("Bounds of the plugin."),
	"Plugin.sandbox":       oneOf("`T0`: a clean environment. `T1`: only what `read`, `write` and `net` grant. `T2`: also a control group. SECURITY.md. Default: `T0`.", "T2", "T1", "T0"),
	"Plugin.tls":           about("Host and plugin authenticate each other: SECURITY.md. Default: `false`."),
	"Plugin.transport":     oneOf("`grpc`, or `stdio`: JSON lines on standard input and output: WIRE.md. Default: `grpc`.", "grpc", "stdio"),
	"Plugin.reload":        oneOf("`exclusive`: the old process stops before the new one starts.", "exclusive"),
	"Plugin.on_failure":    oneOf("What phases do until it has started: see below. Default: `fail_closed`.", "fail_closed", FailOpen),
	"Plugin.subscriptions": about("Changes to its hooks, by full id. Default: none."),
	"Plugin.config":        {doc: "The plugin's own configuration, checked against its schema. Default: none.", object: true},

	"Env.pass": about("Variables of the host that are passed on, if set. Nothing else is, not even `PATH`. Default: none."),
	"Env.set":  about("Variables with values. Default: none."),

	"Limits.memory":      atLeast(1, "Resident memory with all descendants; with more it is killed (`oom`). Measured each second, except in `T2`. Default: unbounded."),
	"Limits.concurrency": between(1, maxConcurrency, "Calls at once; others wait. Default: `32`."),
	"Limits.frame":       between(minFrame, maxFrame, "The largest message either way, 1KiB to 16MiB. Default: `4MiB`."),
	"Limits.start":       atLeast(1, "Time until it has accepted its configuration. Default: `10s`."),
	"Limits.tool":        atLeast(1, "Time for one call of a tool, waiting included. Default: `60s`."),
	"Limits.recycle":     about("Replaces its process from time to time, for programs that leak."),
	"Limits.model":       about("Bounds of its calls of the host service model."),

	"Recycle.age":   atLeast(1, "Replaces a healthy process after this time, less up to a fifth at random, once its successor has started."),
	"Recycle.calls": atLeast(1, "The same after so many calls."),

	"ModelBudget.calls":         atLeast(1, "Calls of the host service `model` in a turn (dispatch, tool call or job outside one). Default: `4`."),
	"ModelBudget.output_tokens": atLeast(1, "Output tokens of these calls together. Default: `4000`."),
	"ModelBudget.time":          atLeast(1, "Time for one of these calls. Default: `20s`."),

	"Grants.contribute":      about("Kinds of contributions. A hook that declares others is off (`not_granted`)."),
	"Grants.sections":        about("Section ids that it may write."),
	"Grants.stable_sections": about("Section ids in the stable part of the prompt."),
	"Grants.join":            about("Section ids of other plugins that it may add to."),
	"Grants.policies":        about("Policies that it may set: `domain/key`, `domain/*`."),
	"Grants.domains":         about("Domains that its contributions may name."),
	"Grants.tools":           about("Tools that it may offer and answer."),
	"Grants.host":            about("Host services (`state`) or methods (`model.complete`) that it may call."),
	"Grants.read":            about("Files and directories that it may read and execute: `/srv/docs`, `./docs` beside this file, `*`. They must exist at its start (`sandbox_partial`)."),
	"Grants.write":           about("Files and directories that it may also change."),
	"Grants.net":             {doc: "`*:443`, a TCP port on any machine; `listen:8080`, one to listen on; `*`, everything but unix sockets of others.", pattern: netPattern},
	"Grants.see":             about("Input fields (`user_text`, `arguments`, …), `metadata`, `policy` and `context` that it receives. Others arrive empty or as `{\"withheld\": true, \"chars\": N}`. Ids, mode, directory, clock and a tool's name are always sent."),

	"Override.enabled":       about("`false` turns it off. Default: `true`."),
	"Override.phase":         about("Where it is expected, also if the plugin does not start. Default: the plugin's."),
	"Override.kinds":         about("Kinds that it may answer with. Default: the plugin's."),
	"Override.role":          about("`transform`, `contribute`, `validate` or `observe`. Default: `contribute`; `transform` for hooks that rewrite."),
	"Override.priority":      about("Higher runs earlier, is kept first under a budget, and wins a conflict. Default: `0`."),
	"Override.after":         about("Ids that it runs after; `ID?` may be absent. Default: none."),
	"Override.before":        about("Ids that it runs before. Default: none."),
	"Override.when":          about("A condition. Default: always."),
	"Override.timeout":       atLeast(1, "Time for one call, at most the phase's. Default: the lesser of `1s` and the phase's time; `30s` in background phases."),
	"Override.on_failure":    about("A word (`fail_closed`, `best_effort`, `fallback`), or words by cause. Default: `best_effort`; `fail_closed` for validators and hooks that decide, except at `turn.pre_end`."),
	"Override.fallback":      about("Contributions for `on_failure: fallback`. Default: none."),
	"Override.retry":         about("Repeats a failed call; only for hooks that declare themselves idempotent."),
	"Override.budget":        about("Bounds the hook's text."),
	"Override.cache":         about("Lets the engine reuse an answer."),
	"Override.shadow":        about("Records what it would have done, and applies nothing. Default: `false`."),
	"Override.visibility":    about("Who reads its safe messages: see below. Default: `internal`."),
	"Override.without_needs": about("`off`: a deciding hook that may not see what it needs is off, not an error."),

	"Retry.attempts":    between(0, maxAttempts, "Calls in all; only for idempotent hooks. Default: none."),
	"Retry.backoff":     atLeast(0, "Pause before the second call. Default: none."),
	"TextBudget.chars":  atLeast(0, "Characters kept of its text, frame and marker included. Default: none."),
	"TextBudget.tokens": atLeast(0, "The same in tokens. Default: none."),
	"Cache.ttl":         atLeast(0, "How long an answer may be reused. Default: none."),
	"Cache.vary":        about("Fields on which the answer depends, such as `dir` or `input.tool`. Default: none."),
	"Cache.tags":        about("Names for invalidating the answer. Default: none."),
}

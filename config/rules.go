package config

import (
	"maps"
	"math"

	"github.com/grapnelhq/grapnel/phases"
)

// rule is what is known of one key beside its Go type. The decoder checks it and
// the schema shows it.
type rule struct {
	// doc is one line for people.
	doc string
	// words are the values that a text may have; nil for any.
	words []string
	// pattern is a regular expression for editors of what other code checks; of a
	// list, that of its entries.
	pattern string
	// bounded numbers lie between low and high, both included. Durations count
	// in nanoseconds, sizes in bytes.
	bounded   bool
	low, high int64
	// required keys must be there.
	required bool
	// object marks JSON that must be an object and may hold secrets.
	object bool
}

// The constructors say what kind of rule a row is.

func about(doc string) rule { return rule{doc: doc} }

func oneOf(doc string, words ...string) rule { return rule{doc: doc, words: words} }

func needed(doc string) rule { return rule{doc: doc, required: true} }

func atLeast(low int64, doc string) rule { return between(low, math.MaxInt64, doc) }

func between(low, high int64, doc string) rule {
	return rule{doc: doc, bounded: true, low: low, high: high}
}

// hexPattern is the form of a SHA-256 checksum.
const hexPattern = "^[0-9a-fA-F]{64}$"

// netPattern is the form of a grant of the network.
const netPattern = `^(\*|(\*|listen):[1-9][0-9]{0,4})$`

// rules returns the table of all keys, "STRUCT.KEY" by the names of the Go
// types.
func rules() map[string]rule {
	table := fileRules()
	for _, part := range []map[string]rule{serveRules(), pluginRules(), subscriptionRules(), commonRules(), promptRules(), otherRules()} {
		maps.Copy(table, part)
	}
	return table
}

// fileRules has the keys of the file itself, of budgets and of manifests.
func fileRules() map[string]rule {
	return map[string]rule{
		"Config.version":  {doc: "The schema of this file; 1.", bounded: true, low: 1, high: 1, required: true},
		"Config.budgets":  about("Bounds of turns and phases."),
		"Config.plugins":  about("The plugins, by unique names. The order has no meaning."),
		"Config.pin":      oneOf("With \"required\", a command without checksum is an error.", "required"),
		"Config.store":    {doc: "Where manifests, sessions and queues are kept: sqlite:PATH or postgres://…. ${NAME} is taken from the environment. Without it nothing is kept.", pattern: `^(sqlite:.+|postgres(ql)?://.+|\$\{[A-Za-z_][A-Za-z0-9_]*\})$`},
		"Config.manifest": about("How manifests are made and kept."),
		"Config.serve":    about("What the gateway lets its clients do."),

		"Budgets.turn":        about("Bounds of one turn."),
		"Budgets.phases":      about("Bounds of single phases, by the phase's name."),
		"TurnBudget.time":     atLeast(1, "Wall time of all blocking phases of a turn together; 10s by default."),
		"TurnBudget.chars":    atLeast(1, "Text of all hook sections together, in characters; 64000 by default."),
		"PhaseBudget.time":    atLeast(1, "Wall time of all hooks of one dispatch together."),
		"PhaseBudget.require": about("Subscriptions that must have completed; otherwise the phase fails closed."),

		"Manifest.keep_text":       about("Keeps the prompt's text in the store, beside the manifest."),
		"Manifest.fingerprint_key": about("Keys fingerprints, so that short texts cannot be guessed. ${NAME} is taken from the environment."),
		"Manifest.chain_key":       about("Keys the hashes of kept manifests, so that nobody without it can make the log anew. ${NAME} is taken from the environment."),
		"Manifest.labels":          oneOf("Whether titles, reasons, labels and paths stand in the manifest as text (full, the default) or as hashes (hash).", "full", "hash"),
		"Manifest.on_failure":      oneOf("What a turn does when its manifest cannot be written: warn (default) or refuse.", "warn", "refuse"),
	}
}

// pluginRules has the keys of a plugin's declaration.
func pluginRules() map[string]rule {
	return map[string]rule{
		"Plugin.name":          {doc: "The plugin's name here; its subscriptions are NAME.HOOK.", pattern: "^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$", required: true},
		"Plugin.builtin":       about("A plugin that the host knows how to start."),
		"Plugin.command":       about("A program: an absolute path, a path relative to this file's folder, or a bare name that is looked up in PATH."),
		"Plugin.args":          about("Arguments of the program. Secrets belong in config or env."),
		"Plugin.sha256":        {doc: "The program's checksum in hex; another program is refused.", pattern: hexPattern},
		"Plugin.pins":          about("Checksums of further files, such as a script's interpreter, by absolute path."),
		"Plugin.unsafe_path":   about("Accepts a program that others may replace."),
		"Plugin.grants":        about("What the plugin may do; nothing by default."),
		"Plugin.env":           about("The plugin's environment; nothing else of the host's reaches it."),
		"Plugin.limits":        about("Bounds of the plugin."),
		"Plugin.sandbox":       oneOf("How the process is confined: T0 (default), T1 with resource limits, Landlock and a filter of system calls, or T2 in a control group besides. Single places in read, write or net need T1.", "T2", "T1", "T0"),
		"Plugin.tls":           about("Host and plugin prove to each other who they are with certificates, for some 25 ms more a start; without it the private folder and the system's word do."),
		"Plugin.reload":        oneOf("With \"exclusive\", the old process is stopped before its successor starts.", "exclusive"),
		"Plugin.subscriptions": about("What the operator changes about subscriptions, by full id."),
		"Plugin.config":        {doc: "The plugin's own configuration. ${NAME} as a whole value is taken from the environment.", object: true},

		"Env.pass": about("Variables that are handed on if they are set."),
		"Env.set":  about("Variables with their values. ${NAME} as a whole value is taken from the environment."),

		"Limits.memory":      atLeast(1, "Resident memory of its process and all that this has started; unbounded by default."),
		"Limits.concurrency": between(1, maxConcurrency, "Calls at once; 32 by default."),
		"Limits.frame":       between(minFrame, MaxFrame, "The largest message either way; 4MiB by default, at most 16MiB."),
		"Limits.start":       atLeast(1, "Time for a start up to the accepted configuration; 10s by default."),
		"Limits.tool":        atLeast(1, "Time for one call of a tool, waiting for the plugin included; 60s by default."),
		"Limits.recycle":     about("Replaces its process from time to time, for programs that leak. The successor comes up while the old one serves."),
		"Limits.model":       about("Bounds of its calls of the host service model."),

		"Recycle.age":   atLeast(1, "How long a process runs; for ever by default. Up to a fifth is taken off at random."),
		"Recycle.calls": atLeast(1, "How many calls it gets, of hooks and tools; unbounded by default. Up to a fifth is taken off at random."),

		"ModelBudget.calls":         atLeast(1, "Calls in one turn, or in one dispatch, tool call or background job outside of any; 4 by default."),
		"ModelBudget.output_tokens": atLeast(1, "Output tokens of these calls together; 4000 by default."),
		"ModelBudget.time":          atLeast(1, "Time for one call, which also ends with the hook that makes it; 20s by default."),

		"Grants.contribute":      about("Kinds of contributions."),
		"Grants.sections":        about("Section ids that it may write."),
		"Grants.stable_sections": about("Section ids that it may write as stable, before the dynamic ones."),
		"Grants.join":            about("Section ids of other plugins that it may add to."),
		"Grants.policies":        about("Policies that it may set, as DOMAIN/KEY."),
		"Grants.domains":         about("Domains that its contributions may name."),
		"Grants.tools":           about("Tools that it may offer."),
		"Grants.host":            about("Host services that it may call, or single methods of them, as SERVICE.METHOD."),
		"Grants.read":            about("Files and folders, with all below them, that it may read and execute: absolute, or from this file's folder with ./ or ../. * is everything."),
		"Grants.write":           about("Files and folders that it may also change, written like those of read."),
		"Grants.net":             {doc: "TCP ports: *:PORT to connect to, on any machine, listen:PORT to listen on. * is everything.", pattern: netPattern},
		"Grants.see":             about("Input fields that it is sent, by name; also metadata, policy, context and prompt_text."),
	}
}

// subscriptionRules has the keys of an operator's change to a subscription.
func subscriptionRules() map[string]rule {
	return map[string]rule{
		"Override.enabled":       about("false turns the subscription off."),
		"Override.phase":         about("The phase. States also that the subscription is expected of a plugin that never came up."),
		"Override.kinds":         about("Contribution kinds that the hook may answer with."),
		"Override.role":          about("How the hook takes part: transform, contribute, validate or observe."),
		"Override.priority":      about("Higher is more important: earlier, kept first, stronger in a conflict."),
		"Override.after":         about("Subscriptions that run before this one; an id that ends in ? may be absent."),
		"Override.before":        about("Subscriptions that run after this one; an id that ends in ? may be absent."),
		"Override.when":          about("A condition; always by default."),
		"Override.timeout":       atLeast(1, "Time for one call, at most the phase's."),
		"Override.on_failure":    about("What a failure does: fail_closed, best_effort or fallback; or {default: WORD, CAUSE: WORD}."),
		"Override.fallback":      about("Contributions that are used with on_failure: fallback."),
		"Override.retry":         about("Repeats a failed call; only for hooks that declare themselves idempotent."),
		"Override.budget":        about("Bounds what is kept of the hook's text."),
		"Override.cache":         about("Lets the engine answer from memory."),
		"Override.shadow":        about("Runs the hook and records it, and applies nothing."),
		"Override.visibility":    about("Who may read its own words that its author calls safe, beside the operator's log: nobody (internal), the command line and administrators (debug), also readers of manifests (user_audit), all callers (user_visible)."),
		"Override.without_needs": about("off: where it decides and may not see what it needs, it is turned off with a fail_open mark in every turn. Otherwise that is a mistake."),

		"Retry.attempts":    between(0, maxAttempts, "Calls in all, the first included."),
		"Retry.backoff":     atLeast(0, "Pause before the second call."),
		"TextBudget.chars":  atLeast(1, "Characters, frame and marker included."),
		"TextBudget.tokens": atLeast(1, "Tokens of the engine's tokenizer."),
		"Cache.ttl":         atLeast(0, "The longest life of an answer."),
		"Cache.vary":        about("Context and input fields that the answer depends on, such as dir or input.tool."),
		"Cache.tags":        about("Names under which the plugin may invalidate the answer."),
	}
}

// commonRules has what contributions of all kinds share.
func commonRules() map[string]rule {
	return map[string]rule{
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
	}
}

// promptRules has the kinds of contributions that carry prompt text.
func promptRules() map[string]rule {
	return map[string]rule{
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
		"PromptSection.cut":         about("What was left away before."),
		"SourceRef.kind":            {doc: "What it is.", words: phases.SourceKinds(), required: true},
		"SourceRef.id":              about("Its id."),
		"SourceRef.label":           about("Its name for people."),
		"Frame.open":                about("The text before the body."),
		"Frame.close":               about("The text behind the body."),
		"SelfCut.original":          atLeast(0, "The original length in characters."),
		"SelfCut.kept":              atLeast(0, "The length that was kept."),
	}
}

// otherRules has the other kinds of contributions.
func otherRules() map[string]rule {
	return map[string]rule{
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
		"BackgroundJob.idempotency_key":    about("Makes a second job of the same key do nothing."),
		"BackgroundJob.not_before":         about("The earliest time, as RFC 3339."),
	}
}

package conformance

import "slices"

// check is one thing that the contract asks for. Its id never changes its meaning.
type check struct {
	id, title string
	severity  Severity
	place     string // of the quotation
	contract  string // quoted from docs/WIRE.md or plugin.proto; a test compares it
	run       func(*trial) error
}

// isGate reports whether no other check can be tried when this one fails.
func (c *check) isGate() bool {
	return slices.Contains([]string{"start.handshake", "configure.accept"}, c.id)
}

// checks are all checks, in the order of their run.
func checks() []*check { //nolint:funlen // a table
	const everyCall = "Every dispatch and call_tool gets exactly one answer, in any order, also after cancel."
	return []*check{
		{
			"start.handshake", "starts and describes itself", Must, "WIRE.md, The session",
			"The session begins with hello and describe", handshake,
		},
		{
			"configure.accept", "accepts its configuration", Must, "WIRE.md, The session",
			"then configure and configured.", acceptsConfiguration,
		},
		{
			"start.cookie", "says what it is and exits when a person starts it", Should, "WIRE.md, gRPC",
			"If it is absent, a person has started the program: say so and exit, with another code than 0", refusesPerson,
		},
		{
			"start.stdout", "writes nothing but frames to standard output", Must, "WIRE.md, stdio 2",
			"Standard output belongs to the protocol: print nothing else there, and keep libraries and child processes from it.", inSession(stdoutIsClean),
		},
		{
			"describe.valid", "describes itself validly", Must, "WIRE.md, Rules 11",
			"Each list in it has at most 256 entries", descriptionIsValid,
		},
		{
			"describe.stable", "describes itself the same at each start", Should, "WIRE.md, The session",
			"the description in the last answer counts.", inSession(descriptionIsStable),
		},
		{
			"schema.tools", "has valid JSON Schemas for its tools", Must, "plugin.proto, Tool",
			"A JSON Schema object; empty means no arguments.", toolSchemas,
		},
		{
			"schema.config", "has a valid JSON Schema for its configuration", Must, "plugin.proto, Description",
			"A JSON Schema for the configuration; empty accepts no configuration.", configSchema,
		},
		{
			"configure.refuse", "survives a wrong configuration", Must, "WIRE.md, Errors",
			"A configured with rejected refuses a configuration: a JSON pointer to the mistake and a message. " +
				"At the first start the plugin is then quarantined; later the configuration before stays in force.", inSession(refusesConfiguration),
		},
		{
			"configure.again", "takes a configuration while calls run", Must, "WIRE.md, The session",
			"configure comes again when the operator changes something, also while calls run;", inSession(configuresAgain),
		},
		{
			"frame.echo", "echoes id and incarnation", Must, "WIRE.md, Rules 2",
			"The answer carries the id and the incarnation of its frame.", inSession(echoes),
		},
		{
			"frame.unknown_body", "answers an unknown body with unsupported", Must, "WIRE.md, Rules 9",
			"An unknown body is answered with unsupported.", inSession(unknownBody),
		},
		{
			"frame.unknown_field", "ignores unknown fields", Must, "WIRE.md, Rules 9",
			"Unknown fields are ignored.", inSession(unknownField),
		},
		{
			"frame.strays", "ignores answers and cancels that belong to nothing", Must, "plugin.proto, Frames",
			"Answers of another incarnation, with an unknown id, second ones and late ones are dropped and counted.", inSession(strays),
		},
		{
			"calls.once", "answers concurrent calls, each once", Must, "WIRE.md, Rules 1",
			everyCall, inSession(answersOnce),
		},
		{
			"calls.unknown", "answers calls of hooks and tools that it does not have", Must, "WIRE.md, Rules 1",
			everyCall, inSession(unknownCalls),
		},
		{
			"cancel.once", "answers cancelled calls, each once", Must, "WIRE.md, Rules 1",
			everyCall, inSession(cancels),
		},
		{
			"deadline.answer", "answers calls whose time is over", Must, "WIRE.md, Rules 1",
			everyCall + " Until it comes, the call keeps one of the plugin's slots.", inSession(deadline),
		},
		{
			"ping.busy", "answers a ping at once, whatever else is going on", Must, "WIRE.md, Rules 4",
			"Handlers must not run in the loop that reads: ping and cancel would wait behind them.", inSession(pingsWhenBusy),
		},
		{
			"size.largest", "takes a frame of the largest size", Must, "WIRE.md, Rules 3",
			"A frame is at most hello.max_frame_bytes long (4 MiB by default, 16 MiB at most).", inSession(takesLargest),
		},
		{
			"size.oversize", "sends no frame that is too long", Must, "WIRE.md, Rules 3",
			"Measure first; instead of a larger answer send a result with an error of the code oversize_reply.", oversize,
		},
		{
			"text.clean", "sends clean text", Must, "WIRE.md, Rules 6",
			"Text is UTF-8 without NUL. What a plugin sends also holds none of the characters that reorder text for the eye", inSession(cleanText),
		},
		{
			"needs.declared", "says what its deciding hooks need", Must, "WIRE.md, Rules 12",
			"A hook lists in needs what it must see: input fields by name, policy, context, metadata, or nothing alone.", needsDeclared,
		},
		{
			"needs.withheld", "does not allow what it was not shown", Must, "WIRE.md, Frames as JSON",
			"A guard must not take that for an input that it may allow.", inSession(withheldInputs),
		},
		{
			"host_calls.refused", "answers its calls when its host calls are refused", Must, "WIRE.md, Errors",
			"From the host any cause may come.", inSession(hostCallsRefused),
		},
		{
			"cache.deterministic", "gives equal answers where it lets hosts cache them", Must, "plugin.proto, Cache",
			"Cache lets the host answer from memory.", inSession(cacheable),
		},
		{
			"drain.answers", "answers all calls, then drain", Must, "WIRE.md, The session",
			"drain comes before the end: answer what you have, then send the pong.", inSession(drains),
		},
		{
			"end.exit", "exits by itself with code 0 when the session ends", Must, "WIRE.md, End",
			"A plugin should then exit by itself, with 0.", inSession(exits),
		},
		{
			"end.sigterm", "ends on SIGTERM", Must, "WIRE.md, End",
			"After half a second it gets SIGTERM, after two seconds SIGKILL", inSession(endsOnSIGTERM),
		},
		{
			"end.children", "leaves no processes behind", Should, "WIRE.md, End",
			"Child processes that are still there, also in other sessions, are found and killed.", inSession(leavesNoChildren),
		},
		{
			"resources.descriptors", "does not leak descriptors", Should, "WIRE.md, The session",
			"which lives as long as the process", inSession(keepsDescriptors),
		},
	}
}

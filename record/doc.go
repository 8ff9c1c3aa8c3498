// Package record keeps what an engine's plugins were sent and what they answered in
// a file, so that it can be looked at, and replayed without host or model.
//
// [Open] makes a [Writer], whose Write is runtime.Options.OnExchange; [NewReader]
// reads a file again. Replaying is not in here: see the command "grapnel plugin
// replay", and runtime.Engine.Repeat for one exchange.
//
// # The format
//
// A file is JSON Lines in UTF-8. Each program that writes begins a session with a
// header, {"grapnel_record":1,"kind":"header","session":…}; the lines that follow
// belong to the session that they name, so that two programs may append to one
// file. The kinds "configure", "dispatch", "tool" and "host" are exchanges; "gap"
// says that some are missing, and why, and "end" closes a session with the counts.
// The fields of what was sent and answered have the names of the wire contract.
// "grapnel schema record" prints the JSON Schema of a line ([Line]).
//
// A line is written at once, by one call of the system, before the caller of the
// plugin goes on: a program that is killed leaves at most its last line
// unfinished, which readers tolerate. That a line cannot be written is counted and
// told, and disturbs nobody. A disk that hangs holds up who records on it: choose a
// local one.
//
// # What is in it
//
// Everything that plugins were shown: texts of users, tool arguments, answers of
// models. The file is for its owner alone (mode 0600). Values of a plugin's
// configuration that the operator took from the environment stand as "***", with
// the variable's name beside them; what the plugin itself writes of them into an
// answer is recorded as it is. A plugin's environment is not recorded.
//
// Stability: experimental; the format is versioned and only grows.
package record

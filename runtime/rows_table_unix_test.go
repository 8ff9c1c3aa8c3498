//go:build unix

package runtime_test

// tableRow is one row of the table of what plugins do wrong.
type tableRow struct {
	Number int    // what the row is called everywhere: in the names of the tests and in docs/FAILURES.md
	Does   string // what the plugin does: the rest of a sentence that begins "the plugin"
}

// tableRows returns the table, in order. What must happen stands in docs/FAILURES.md,
// and the tests of the engine have at least one case for each row.
func tableRows() []tableRow {
	rows := make([]tableRow, 0, len(does()))
	for i, text := range does() {
		rows = append(rows, tableRow{Number: i + 1, Does: text})
	}
	return rows
}

// does are the rows' texts; the first is row 1.
func does() []string {
	return []string{
		"hangs before the handshake",
		"handshakes and is mute, or names a socket that is not there",
		"prints noise before the handshake",
		"ignores cancellation",
		"is stopped or spins",
		"answers with more than a frame",
		"answers within bytes, over characters",
		"is sent more than it can take",
		"floods stderr",
		"floods stdout without newline",
		"logs escape sequences, newlines, forged fields",
		"forks children that outlive it, also with setsid",
		"crashes during a call",
		"crashes half-way through an answer",
		"crashes again and again",
		"leaks descriptors, memory, goroutines",
		"is killed for memory",
		"outlives a killed host",
		"is replaced on disk while it runs",
		"is for another architecture, not executable, absent, a script without interpreter",
		"speaks another protocol version, or needs a feature the host lacks",
		"is configured twice, or registers one hook twice",
		"gives two sections of one id, or another plugin's id",
		"sends invalid UTF-8, NUL, lone surrogates, bidi controls",
		"takes part in a dependency cycle",
		"ties on priority",
		"dies together with all others",
		"calls the host back during a dispatch",
		"sees the clock jump, the machine sleep",
		"dribbles its answer",
		"takes the whole phase's time",
		"is called faster than it answers",
		"trips the breaker by denying, or by one slow hook of several",
		"is required and was never up",
		"has a condition that errors",
		"answers twice, late, or with a wrong id",
		"answers after its restart",
		"changes what it was given",
		"is running when the host stops",
		"lies in a directory that others may write",
		"gets a temp directory too long for a socket path",
		"cannot be forked (EMFILE, EAGAIN)",
		"is reconfigured while calls run",
		"would leak secrets (argv, environment, dumps, logs)",
		"is dialled by another process of the same user",
		"claims capabilities",
		"gives an empty answer, a huge count of tiny contributions, deep JSON",
		"is asked to stop while starting",
	}
}

package main

import (
	"bytes"
	"strings"
	"testing"
)

// asked is a command that takes away all two of something, which it asks for: what is
// said at the terminal decides. Nothing of the question is a result.
type asked struct {
	// place makes the two, left counts what is left of them.
	place func(*testing.T) string
	left  func(t *testing.T, dsn string) int
	args  func(dsn string) []string
	// question, title and shows are what is said before the answer, refusal after a no.
	question, title, shows, refusal string
}

func (c asked) run(t *testing.T) {
	t.Helper()
	tests := []struct {
		name, answer string
		flags        []string
		code, left   int
		says         string
	}{
		{"yes", "y\n", nil, exitOK, 0, c.question},
		{"in full, without an end", "YES", nil, exitOK, 0, c.shows},
		{"no", "n\n", nil, exitNo, 2, c.refusal},
		{"nothing", "\n", nil, exitNo, 2, c.refusal},
		{"something else", "yes, please\n", nil, exitNo, 2, c.refusal},
		{"nobody", "", nil, exitUsage, 2, "there is nobody to ask"},
		{"not asked", "n\n", []string{"--yes"}, exitOK, 0, ""},
		{"asked with JSON too", "y\n", []string{"--json"}, exitOK, 0, c.title},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			dsn := c.place(t)
			var out, errs bytes.Buffer
			a := &app{in: strings.NewReader(tt.answer), err: &errs, stdout: &out, answers: true}
			err := a.execute(t.Context(), append(append(c.args(dsn), "--config", emptyConfig(t)), tt.flags...))
			if got := codeOf(err); got != tt.code {
				t.Errorf("exit code %d, want %d: %v", got, tt.code, err)
			}
			said := errs.String()
			if err != nil {
				said += err.Error()
			}
			if !strings.Contains(said, tt.says) || strings.Contains(a.out.String(), "[y/N]") {
				t.Errorf("it said %q, and printed %q; want %q said", said, a.out.String(), tt.says)
			}
			if left := c.left(t, dsn); left != tt.left {
				t.Errorf("%d are left, want %d", left, tt.left)
			}
		})
	}
}

package main

import (
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// onPTY runs a command with a terminal as its standard output, and returns what reached it.
func onPTY(t *testing.T, args ...string) string {
	t.Helper()
	control := must(os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0))(t)
	defer func() { _ = control.Close() }()
	fd := int(control.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n := must(unix.IoctlGetInt(fd, unix.TIOCGPTN))(t)
	tty := must(os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	shown := make(chan string)
	go func() {
		data, _ := io.ReadAll(control) // ends with EIO when nobody has the terminal open
		shown <- string(data)
	}()
	var errs strings.Builder
	code := run(t.Context(), args, streams{in: strings.NewReader(""), out: tty, err: &errs})
	if err := tty.Close(); err != nil || code != exitOK {
		t.Errorf("%q: exit code %d: %s, %v", args, code, errs.String(), err)
	}
	return <-shown
}

// TestColoursOnTerminal: a real terminal gets our sequences and none of a plugin's, and no colours if its user wants none.
func TestColoursOnTerminal(t *testing.T) {
	base := writeTree(t, map[string]string{".git/HEAD": "", "rules.yaml": `version: 1
plugins:
  - name: rules
    builtin: scripted
    grants: {contribute: [prompt_section], sections: ['*']}
    config:
      hooks:
        - {id: text, phase: turn.pre_prompt_compile, respond: [{kind: prompt_section, section_id: text, content: "\e[34mblue\e[4m"}]}
        - {id: broken, phase: turn.pre_prompt_compile, error: {code: down, message: "\e[34mblue\e[4m"}}
`})
	compile := []string{"compile", "--config", filepath.Join(base, "rules.yaml"), "--dir", base}
	for _, tt := range []struct {
		name, term, noColor string
		flag                string
		coloured            bool
	}{
		{"terminal", "xterm", "", "--color=auto", true},
		{"NO_COLOR", "xterm", "1", "--color=auto", false},
		{"dumb", "dumb", "", "--color=auto", false},
		{"never", "xterm", "", "--color=never", false},
		{"always", "dumb", "1", "--color=always", true},
		{"json", "xterm", "", "--json", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("TERM", tt.term)
			t.Setenv("NO_COLOR", tt.noColor)
			got := onPTY(t, append(compile, tt.flag)...)
			if !strings.Contains(got, "blue") || !strings.Contains(got, "plugin_error") {
				t.Errorf("there is no result: %q", got)
			}
			if strings.Contains(got, "\x1b[34m") || strings.Contains(got, "\x1b[4m") {
				t.Errorf("a plugin's sequence: %q", got)
			}
			for _, want := range []string{"\x1b[32msucceeded\x1b[0m  -", "\x1b[31mfailed\x1b[0m     plugin_error", "\x1b[33mwarning\x1b[0m   fail_open", "\r\n\x1b[1msections ("} {
				if strings.Contains(got, want) != tt.coloured {
					t.Errorf("%q: want it %v, in\n%q", want, tt.coloured, got)
				}
			}
			if !tt.coloured && strings.Contains(got, "\x1b") {
				t.Errorf("an escape sequence: %q", got)
			}
		})
	}
}

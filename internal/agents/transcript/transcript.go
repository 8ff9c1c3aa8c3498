// Package transcript has what the readers of agents' transcripts share: a file's lines, and a [Teller] that says what they
// mean in the words of the agent's hooks.
//
// Transcripts are hostile. A file is read as a stream. A line that is longer than [MostLine], is not JSON or has an unknown type
// says nothing, and is counted. What a reader keeps between lines is bounded.
//
// Start at [Lines]. Stability: internal.
package transcript

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/jsonscan"
)

// MostLine is the length of the longest line that is read, and MostText how much of a text is kept.
const (
	MostLine = 16 << 20
	MostText = 256 << 10
)

// Reader reads the lines of one file in their order, and reports of each whether it is known. A nil line is the file's end.
type Reader func(line Value) (known bool)

// Lines returns the [agent.Transcripts.Read] of an agent whose transcripts have JSON in each line. begin is called for each file.
func Lines(a *agent.Agent, begin func(t *Teller, path string) Reader) func(path string) iter.Seq2[*agent.Said, error] {
	return func(path string) iter.Seq2[*agent.Said, error] {
		return Tell(a, func(t *Teller) error {
			if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
				return cmp.Or(err, fmt.Errorf("%s is not a regular file", path))
			}
			file, err := os.Open(path)
			if err != nil {
				return err
			}
			defer func() { _ = file.Close() }() // it is only read
			return t.lines(file, begin(t, path))
		})
	}
}

// lines reads a file. A last line without an end is one that is being written, unless it is whole.
func (t *Teller) lines(file io.Reader, read Reader) error {
	buffered := bufio.NewReaderSize(file, 64<<10)
	var line []byte
	for skipping := false; !t.Done; {
		part, err := buffered.ReadSlice('\n')
		if skipping = skipping || len(line)+len(part) > MostLine; !skipping {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if said := repaired(bytes.TrimSpace(line)); skipping || len(said) > 0 && !read(said) {
			t.unknown++
		}
		if line, skipping = line[:0], false; errors.Is(err, io.EOF) {
			read(nil)
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}

// repaired returns a line with U+FFFD for what no text may hold.
func repaired(line []byte) Value {
	if !utf8.Valid(line) || bytes.Contains(line, []byte(jsonscan.NUL)) || bytes.Contains(line, []byte(`\ud`)) || bytes.Contains(line, []byte(`\uD`)) {
		line, _ = jsonscan.Repair(line)
	}
	return line
}

// Below returns a function for [agent.Transcripts.Dirs]: directories in the one that a variable names, or else in a person's home.
func Below(variable, otherwise string, names ...string) func(home string, env func(string) string) []string {
	return func(home string, env func(string) string) (dirs []string) {
		for _, name := range names {
			dirs = append(dirs, filepath.Join(cmp.Or(env(variable), filepath.Join(home, otherwise)), name))
		}
		return dirs
	}
}

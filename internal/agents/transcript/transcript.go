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
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/jsonscan"
)

// MostLine is the length of the longest line that is read, and MostText how much of a text is kept.
const (
	MostLine = 16 << 20
	MostText = 256 << 10
)

// Reader reads the lines of one file in their order, and reports of each whether it is known. A nil line is the file's end.
type Reader func(line []byte) (known bool)

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
			defer file.Close()
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
		if said := bytes.TrimSpace(line); skipping || len(said) > 0 && !read(said) {
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

// Decode decodes the JSON of a line. U+FFFD stands for what no text may hold.
func Decode(line []byte, into any) bool {
	line, _ = jsonscan.Repair(line)
	return json.Unmarshal(line, into) == nil
}

// Member returns the text of a member of the object in a line, by its quoted name; empty if there is none. It decodes nothing.
func Member(line []byte, quoted string) string {
	depth := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			end := closing(line, i)
			if depth == 1 && string(line[i:end]) == quoted {
				rest, isName := bytes.CutPrefix(bytes.TrimLeft(line[end:], " \t"), []byte(":"))
				if value := bytes.TrimLeft(rest, " \t"); isName && bytes.HasPrefix(value, []byte(`"`)) {
					return string(bytes.Trim(value[:closing(value, 0)], `"`))
				}
			}
			i = end - 1
		}
	}
	return ""
}

// closing returns the place behind the string that begins at a place.
func closing(line []byte, at int) int {
	for i := at + 1; i <= len(line); i++ {
		n := bytes.IndexByte(line[i:], '"')
		if n < 0 {
			break
		}
		i += n
		if escapes := i - len(bytes.TrimRight(line[at+1:i], `\`)) - at - 1; escapes%2 == 0 {
			return i + 1
		}
	}
	return len(line)
}

// Texts returns the text of a value: itself, its JSON, or the texts of its parts.
func Texts(value json.RawMessage) string {
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(value, &parts) != nil {
		return agent.TextOf(value)
	}
	var texts []string
	for _, part := range parts {
		if part.Text != "" {
			texts = append(texts, part.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// ParseTime reads a time as agents write it; it is zero if it is not one.
func ParseTime(text string) time.Time {
	at, _ := time.Parse(time.RFC3339Nano, text)
	return at
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

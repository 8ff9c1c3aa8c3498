// Package transcript has what the readers of agents' transcripts share: a file's lines, and a [Teller] that says what they
// mean in the words of the agent's hooks.
//
// Transcripts are hostile. A file is read as a stream; a line that is longer than [MostLine], is not JSON or has a type that is
// not known says nothing, and is counted. What a reader keeps between lines is bounded.
//
// Start at [Of]. Stability: internal.
package transcript

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/jsonscan"
)

const (
	// MostLine is the length of the longest line that is read.
	MostLine = 16 << 20
	// MostText is how much of a result is kept, in bytes.
	MostText = 256 << 10

	mostOpen      = 1024    // calls without a result
	mostArguments = 4 << 10 // that are said again with the result
)

// Reader reads the lines of one file in their order, and reports of each whether it is known.
type Reader func(line []byte) (known bool)

// Lines returns the [agent.Transcripts.Read] of an agent whose transcripts have a JSON value in each line. begin is called for
// each file.
func Lines(a *agent.Agent, begin func(t *Teller) Reader) func(path string) iter.Seq2[*agent.Said, error] {
	return func(path string) iter.Seq2[*agent.Said, error] {
		return Tell(a, func(t *Teller) error {
			file, err := os.Open(path)
			if err != nil {
				return err
			}
			defer file.Close()
			if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
				return errors.Join(err, fmt.Errorf("%s is not a regular file", path))
			}
			return t.lines(file, begin(t))
		})
	}
}

// Tell returns what read tells, and its error at the end. read returns early once [Teller.Done].
func Tell(a *agent.Agent, read func(t *Teller) error) iter.Seq2[*agent.Said, error] {
	return func(yield func(*agent.Said, error) bool) {
		t := &Teller{agent: a, yield: yield, calls: map[string]agent.Payload{}}
		err := read(t)
		if !t.done && t.unknown > 0 {
			t.tell(&agent.Said{Version: t.Version})
		}
		if !t.done && err != nil {
			yield(nil, err)
		}
	}
}

// lines reads a file. A last line without an end is one that is being written, unless it is whole.
func (t *Teller) lines(file io.Reader, read Reader) error {
	buffered := bufio.NewReaderSize(file, 64<<10)
	var long []byte // what a line has before the buffer
	skipping := false
	for !t.done {
		part, err := buffered.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return err
		}
		if skipping = skipping || len(long)+len(part) > MostLine; skipping {
			long = nil
		} else if err != nil || len(long) > 0 {
			long = append(long, part...)
			part = long
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if line := bytes.TrimSpace(part); skipping || len(line) > 0 && !read(line) {
			t.unknown++
		}
		if err != nil {
			return nil
		}
		long, skipping = long[:0], false
	}
	return nil
}

// Decode decodes the JSON of a line. U+FFFD stands for what no text may hold.
func Decode(line []byte, into any) bool {
	line, _ = jsonscan.Repair(line)
	return json.Unmarshal(line, into) == nil
}

// Member returns the text of a member of the object in a line, by its quoted name; nil if there is none. It decodes nothing, and
// checks no more than it needs.
func Member(line []byte, quoted string) []byte {
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
				rest := bytes.TrimLeft(line[end:], " \t")
				if value := bytes.TrimLeft(bytes.TrimPrefix(rest, []byte(":")), " \t"); len(value) < len(rest) && len(value) > 0 && value[0] == '"' {
					return value[1:max(1, closing(value, 0)-1)]
				}
			}
			i = end - 1
		}
	}
	return nil
}

// closing returns the place behind the string that begins at a place.
func closing(line []byte, at int) int {
	for i := at + 1; ; i++ {
		n := bytes.IndexByte(line[i:], '"')
		if n < 0 {
			return len(line)
		}
		i += n
		before := bytes.TrimRight(line[at+1:i], `\\`)
		if (i-at-1-len(before))%2 == 0 {
			return i + 1
		}
	}
}

// ParseTime reads a time as agents write it; it is zero if it is not one.
func ParseTime(text string) time.Time {
	at, _ := time.Parse(time.RFC3339Nano, text)
	return at
}

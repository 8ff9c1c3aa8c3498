package main

import (
	"io"
	"time"

	"github.com/grapnelhq/grapnel/internal/text"
)

// tallyEvery is how often a count on a terminal changes.
const tallyEvery = 100 * time.Millisecond

// tally counts what a long work has done on a terminal, and nowhere else. The
// work itself drives it, so there is nothing to wait for.
type tally struct {
	out io.Writer
	// format has a place for the count.
	format string
	count  int
	// next is when the line is written again; zero never.
	next  time.Time
	shown bool
}

// newTally begins a count that shows after a while. Where standard error is no
// terminal it never does.
func (a *app) newTally(format string) *tally {
	t := &tally{out: a.err, format: format}
	if isTerminal(a.err) {
		t.next = time.Now().Add(progressAfter)
	}
	return t
}

// add counts one more.
func (t *tally) add() {
	t.count++
	// The clock costs more than the count.
	if t.count%64 == 0 {
		t.show()
	}
}

// set says how many there are by now.
func (t *tally) set(count int) {
	t.count = count
	t.show()
}

// show writes the line if it is time to.
func (t *tally) show() {
	if t.next.IsZero() {
		return
	}
	if now := time.Now(); now.After(t.next) {
		t.next, t.shown = now.Add(tallyEvery), true
		tellf(t.out, "\r\x1b[K"+t.format, text.Thousands(t.count))
	}
}

// stop clears the line.
func (t *tally) stop() {
	if t.shown {
		tellf(t.out, "\r\x1b[K")
	}
}

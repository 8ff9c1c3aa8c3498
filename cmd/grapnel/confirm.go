package main

import (
	"bufio"
	"fmt"
	"strings"
)

// doing is what cannot be taken back: the verb, and what has been done then.
type doing struct{ verb, done string }

// confirm shows what goes, and asks whether it is to go; what names so many of them.
// Nobody to ask is a mistake of usage, and no is [exitNo].
func (a *app) confirm(d doing, count int, what string, show func()) error {
	nobody := usagef("there is nobody to ask whether %s may be %s; give --yes, or look first with --dry-run", what, d.done)
	if !a.asks() {
		return nobody
	}
	show()
	// Results are printed at the end; a question is no result.
	tellf(a.err, "%s\n%s %s for good? [y/N] ", a.out.String(), strings.ToUpper(d.verb[:1])+d.verb[1:], plural(count, "it", what))
	a.out.Reset()
	line, err := bufio.NewReader(a.in).ReadString('\n')
	if err != nil && line == "" {
		tellf(a.err, "\n")
		return nobody // a device without anybody at it, such as the null device
	}
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return refused(fmt.Errorf("nothing was %s", d.done))
	}
	return nil
}

// asks reports whether there is somebody to answer.
func (a *app) asks() bool { return a.answers || isTerminal(a.in) }

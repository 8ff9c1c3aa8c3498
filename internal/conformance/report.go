package conformance

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"
)

// Mark is the sign that an outcome has in texts.
func (o Outcome) Mark() string {
	switch o {
	case Passed:
		return "✓"
	case Failed, Stale:
		return "✗"
	case Skipped, Known:
		return "–"
	}
	return "?"
}

// Lines are a result as text: one line, and for a failure what was sent, what came, and what the contract says.
func (r *Result) Lines() []string {
	line := r.Outcome.Mark() + " " + r.ID + ": " + r.Title
	switch {
	case r.Outcome == Known:
		line += " (known failure: " + r.Reason + ")"
	case r.Outcome == Skipped:
		line += " (skipped: " + r.Reason + ")"
	case r.Outcome == Failed && r.Severity == Should:
		line += " (should)"
	}
	lines := []string{line}
	if r.Outcome != Failed && r.Outcome != Stale {
		return lines
	}
	lines = append(lines, "    "+r.Reason)
	if r.Outcome == Stale {
		return lines
	}
	for _, s := range r.Sent {
		lines = append(lines, "    sent: "+s)
	}
	for _, s := range r.Came {
		lines = append(lines, "    came: "+s)
	}
	return append(lines, "    the contract says ("+r.Place+"): "+r.Contract)
}

// Summary is the last line of a report as text.
func (r *Report) Summary() string {
	word := "conforms"
	if !r.Conforms {
		word = "does not conform"
	}
	s := fmt.Sprintf("%s: %d passed, %d failed, %d skipped", word, r.Passed, r.Failed, r.Skipped)
	if r.Known > 0 {
		s += fmt.Sprintf(", %d known to fail", r.Known)
	}
	return s
}

type junitSuite struct {
	XMLName  xml.Name    `xml:"testsuite"`
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Time     string      `xml:"time,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Name    string      `xml:"name,attr"`
	Class   string      `xml:"classname,attr"`
	Time    string      `xml:"time,attr"`
	Failure *junitWords `xml:"failure,omitempty"`
	Skipped *junitWords `xml:"skipped,omitempty"`
}

type junitWords struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// WriteJUnit writes the report as JUnit XML, which systems for continuous integration show. A failed check with the
// severity should is skipped there: such systems know no warnings.
func (r *Report) WriteJUnit(w io.Writer) error {
	suite := junitSuite{Name: "grapnel plugin check: " + r.Transport, Tests: len(r.Results)}
	total := 0.0
	for i := range r.Results {
		res := &r.Results[i]
		c := junitCase{Name: res.ID + ": " + res.Title, Class: "grapnel.conformance", Time: seconds(res.MS)}
		words := &junitWords{res.Reason, strings.Join(res.Lines(), "\n")}
		switch {
		case res.Outcome == Passed:
		case res.Fails():
			c.Failure = words
			suite.Failures++
		default:
			c.Skipped = words
			suite.Skipped++
		}
		suite.Cases = append(suite.Cases, c)
		total += res.MS
	}
	suite.Time = seconds(total)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(suite); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func seconds(ms float64) string {
	return fmt.Sprintf("%.3f", time.Duration(ms*float64(time.Millisecond)).Seconds())
}

package chain

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/agentsdoctest"
)

// The forms of the lines, as documented.
var (
	delimiter = regexp.MustCompile(`^\[source: "([^"]*)", scope (managed|global|project|local|nested), kept (\d+) of (\d+) bytes\]$`)
	marker    = regexp.MustCompile(`^\[truncated: (.*), kept (\d+) of (\d+) bytes\]$`)
	omission  = regexp.MustCompile(`^\[omitted: (?:.*, \d+ bytes, (?:budget exhausted|untrusted root)|\d+ files, budget exhausted)\]$`)
)

// parsed is one source as a reader of the text sees it.
type parsed struct {
	path        string
	scope       Scope
	kept, total int64
	body        string
	truncated   bool
}

// parse reads a text back.
func parse(t testing.TB, text string, lazy bool) (list []parsed, omitted []string) {
	t.Helper()
	rest, ok := strings.CutPrefix(text, header(&Options{Lazy: lazy}))
	if !ok || !strings.HasSuffix(rest, "\n") {
		t.Fatalf("no header, or no end:\n%s", text)
	}
	var body []string
	finish := func() {
		if len(list) > 0 && body != nil {
			list[len(list)-1].body = agentsdoctest.Unescape(strings.Join(body, "\n"))
		}
		body = nil
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(rest, "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "[source:"):
			finish()
			m := delimiter.FindStringSubmatch(line)
			if m == nil {
				t.Fatalf("bad line %q", line)
			}
			p := parsed{path: m[1], scope: Scope(m[2])}
			p.kept, _ = strconv.ParseInt(m[3], 10, 64)
			p.total, _ = strconv.ParseInt(m[4], 10, 64)
			list = append(list, p)
		case strings.HasPrefix(line, "[truncated:"):
			finish()
			last := &list[len(list)-1]
			m := marker.FindStringSubmatch(line)
			if m == nil || m[1] != last.path || m[2] != strconv.FormatInt(last.kept, 10) || m[3] != strconv.FormatInt(last.total, 10) {
				t.Fatalf("line %q after %+v", line, last)
			}
			last.truncated = true
		case strings.HasPrefix(line, "[omitted:"):
			finish()
			if !omission.MatchString(line) {
				t.Fatalf("bad line %q", line)
			}
			omitted = append(omitted, line)
		default:
			body = append(body, line)
		}
	}
	finish()
	return list, omitted
}

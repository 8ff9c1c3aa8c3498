package above

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

// can returns what takers of events can do. An event may be a pattern of Claude Code's: with * at its end, or ! before it.
func can(powers map[string][]string, events []string) []string {
	list := []string{}
	for _, does := range slices.Sorted(maps.Keys(powers)) {
		if slices.ContainsFunc(powers[does], func(of string) bool {
			return slices.ContainsFunc(events, func(e string) bool {
				not, negated := strings.CutPrefix(e, "!")
				return negated && !covers(not, of) || !negated && (covers(e, of) || covers(of, e))
			})
		}) {
			list = append(list, does)
		}
	}
	return list
}

// covers reports whether a pattern stands for all that another one stands for.
func covers(pattern, other string) bool {
	prefix, star := strings.CutSuffix(pattern, "*")
	return pattern == other || star && strings.HasPrefix(other, prefix)
}

//nolint:gochecknoglobals // immutable
var (
	literal = strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`) // for patterns of files
	escape  = lazyregexp.New(`\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\}|\r?\n|.)`)
	quoted  = lazyregexp.New("[\"'`](!?[a-z]\\w*(?:\\.\\w+)*\\.(?:\\w+|\\*))[\"'`]|[(>/\\n]\\s*[\"'`](\\*)[\"'`]") // elsewhere * is a value
	nearby  = lazyregexp.New("[\"'`](\\.\\.?/[^\"'`\\n]*)[\"'`]")
)

// plain replaces the escapes of JavaScript.
func plain(text string) string {
	return escape().ReplaceAllStringFunc(text, func(s string) string {
		if n, err := strconv.ParseInt(strings.Trim(s[2:], "{}"), 16, 32); err == nil && (s[1] == 'x' || s[1] == 'u') {
			return string(rune(n))
		}
		return strings.TrimLeft(s[1:], "\r\n\u2028\u2029")
	})
}

// named returns the events in powers that a program without escapes names. Each literal counts, wherever it stands: who hides
// a call behind comments and other names still has to write the event, since Claude Code takes nothing else.
func named(powers map[string][]string, text string) []string {
	events := []string{}
	for _, m := range quoted().FindAllStringSubmatch(text, -1) {
		if event := m[1] + m[2]; len(can(powers, []string{event})) > 0 {
			events = append(events, event)
		}
	}
	slices.Sort(events)
	return slices.Compact(events)
}

package guard

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/facts/argument"
	"github.com/grapnelhq/grapnel/internal/facts/shell"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

// Result takes what is in protected files out of a tool's result, and returns what is left; changed is false if that is
// all of it. cut says that the result is only the beginning of a longer one, of which the rest then goes too.
//
// A result goes as a whole if its call would be denied. Otherwise the lines go that the result itself says are a
// protected file's, tokens and keys of known formats, and the values of secrets in the protected files of the working
// directory, wherever they stand.
func (g *Guard) Result(tool string, arguments json.RawMessage, touched []string, result string, cut bool, dir string) (left string, changed bool) {
	if f := g.Call(tool, arguments, touched, dir); f != nil && result != "" {
		return note(f.Reason()), true
	}
	r := &redaction{judge: newJudge(g, NewView(dir, g.Home))}
	r.values = r.secretValues()
	left = r.whole(result)
	if cut {
		left += "\n" + note("the rest of the result: it is too long to be searched for protected files. Ask for less")
	}
	return left, left != result
}

func note(why string) string { return "[removed by the file guard: " + why + "]" }

type redaction struct {
	*judge
	values []string
}

// whole redacts a result, inside the texts of one that is JSON.
func (r *redaction) whole(result string) string {
	trimmed := strings.TrimSpace(result)
	if strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[") {
		var value any
		dec := json.NewDecoder(strings.NewReader(trimmed))
		dec.UseNumber()
		if dec.Decode(&value) == nil && !dec.More() {
			return r.document(result, value)
		}
	}
	return r.text(result)
}

// document redacts the texts of a JSON value; without a change it stays as it is, to the byte.
func (r *redaction) document(result string, value any) string {
	now, changed := r.value(value, false)
	if !changed {
		return result
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(now); err != nil {
		return note("the result cannot be written again")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// value redacts the texts of a JSON value. Of an object that names a protected file, the content is what is protected.
func (r *redaction) value(value any, protected bool) (now any, changed bool) {
	switch value := value.(type) {
	case string:
		text := note("it is a protected file's")
		if !protected {
			text = r.text(value)
		}
		return text, text != value
	case []any:
		for i := range value {
			inner, here := r.value(value[i], protected)
			value[i], changed = inner, changed || here
		}
	case map[string]any:
		protected = protected || r.names(value)
		for key, inner := range value {
			if protected && !contentKey(key) && !nested(inner) {
				continue
			}
			inner, here := r.value(inner, protected && (contentKey(key) || nested(inner)))
			value[key], changed = inner, changed || here
		}
	}
	return value, changed
}

func nested(value any) bool {
	switch value.(type) {
	case []any, map[string]any:
		return true
	}
	return false
}

// contentKey reports whether a member of that name holds what is in a file, rather than its name or size.
func contentKey(key string) bool {
	return shell.OneOf("content contents text data blob body output value snippet preview match matches line lines excerpt source patch diff oldtext newtext originalfile", argument.Fold(key))
}

// names reports whether an object names a protected file.
func (r *redaction) names(object map[string]any) bool {
	for key, value := range object {
		text, is := value.(string)
		if key = argument.Fold(key); is && (strings.HasSuffix(key, "path") || strings.HasSuffix(key, "file") || shell.OneOf("uri url filename name source location", key)) && r.file(text, nil) != nil {
			return true
		}
	}
	return false
}

var (
	// matched is a line of grep and rg: the file, and perhaps a number.
	matched = lazyregexp.New(`^((?:[A-Za-z]:)?[^\s:][^:\n]{0,1000}?)(?::\d+)?(?::\d+)?:|^([^\s:][^:\n]{0,1000}?)-\d+-`)
	// heading is a line that says which file follows, as head, cat'ing tools and diff write it.
	heading = lazyregexp.New(`^(?:(?:==>|---|===|-----|#####|>>>) (.{1,1000}?) (?:<==|---|===|-----|#####|<<<)|diff --git a/(.{1,1000}?) b/.*|(?i:file|path): ?(.{1,1000})|<(?:file|document)\b[^>]*?(?:path|name)="([^"]{1,1000})"[^>]*>)\s*$`)
	// numbered is a line of rg --heading and of git grep --heading.
	numbered = lazyregexp.New(`^\d+[:-]`)
)

// text redacts a plain text.
func (r *redaction) text(text string) string {
	lines := strings.SplitAfter(text, "\n")
	inside, changed := false, false
	var b strings.Builder
	for i, line := range lines {
		bare := strings.TrimRight(line, "\r\n")
		if name, ok := headed(bare); ok {
			if inside = r.file(name, nil) != nil; inside {
				b.WriteString(line + note(shell.Visible(name)+" is protected") + "\n")
				changed = true
				continue
			}
		} else if i+1 < len(lines) && begins(lines[i+1], "0123456789") && numbered().MatchString(lines[i+1]) && !numbered().MatchString(bare) && bare != "" {
			if inside = r.named(bare); inside {
				b.WriteString(line + note("it is protected") + "\n")
				changed = true
				continue
			}
		}
		switch name, ok := prefixed(bare); {
		case inside:
			changed = true
		case ok && r.named(name) && len(bare) > len(name)+1:
			b.WriteString(name + ": " + note("it is protected") + line[len(bare):])
			changed = true
		default:
			b.WriteString(line)
		}
	}
	if changed {
		text = b.String()
	}
	return r.secrets(text)
}

// begins reports whether a line begins with one of the signs. That costs less than an expression, and there may be many lines.
func begins(line, signs string) bool { return line != "" && strings.IndexByte(signs, line[0]) >= 0 }

// heads are how headings begin, which costs less to find out than whether a line is one.
//
//nolint:gochecknoglobals // a constant
var heads = []string{"==>", "---", "===", "#####", ">>>", "diff --git a/", "file:", "path:", "<file", "<document"}

// headed returns the file that a line announces.
func headed(line string) (name string, ok bool) {
	if !slices.ContainsFunc(heads, func(head string) bool { return len(line) > len(head) && strings.EqualFold(line[:len(head)], head) }) {
		return "", false
	}
	return first(heading().FindStringSubmatch(line))
}

// prefixed returns the file at the beginning of a line that is one of grep's, unless [redaction.named] would refuse it.
func prefixed(line string) (name string, ok bool) {
	end := strings.IndexAny(line, unnamed)
	if end < 0 {
		end = len(line)
	}
	if !strings.ContainsAny(line[:end], ":-") {
		return "", false
	}
	return first(matched().FindStringSubmatch(line))
}

// unnamed are signs that no name at the beginning of a line has.
const unnamed = " \t(){}\"'"

// named judges the beginning of a line as the name of a file, by its letters alone: there may be many lines.
func (r *redaction) named(name string) bool {
	if web(name) || strings.ContainsAny(name, unnamed) {
		return false
	}
	_, ok := r.Set.Path(name)
	return ok
}

// first is the first group of a match that took part.
func first(groups []string) (string, bool) {
	for _, g := range groups[min(1, len(groups)):] {
		if g != "" {
			return g, true
		}
	}
	return "", false
}

// secrets replaces tokens of known formats, and the values from protected files.
func (r *redaction) secrets(text string) string {
	for _, value := range r.values {
		text = strings.ReplaceAll(text, value, note("a secret"))
	}
	if r.Secrets == nil {
		return text
	}
	var b strings.Builder
	at := 0
	for _, f := range r.Secrets.Find(text) {
		if strings.Contains(text[f.Start:f.End], "removed by the file guard") {
			continue
		}
		b.WriteString(text[at:f.Start] + note(f.Pattern))
		at = f.End
	}
	return b.String() + text[at:]
}

// Bounds of the files whose values are taken out of results.
const (
	maxValueFiles = 16
	maxValueFile  = 64 << 10
	maxValues     = 500
	minValue      = 8
)

// secretValues are the values of secrets in the protected files of the working directory, the longest first.
func (r *redaction) secretValues() []string {
	if !r.Values {
		return nil
	}
	var values []string
	files := 0
	for _, entry := range r.list(r.Dir) {
		path := filepath.Join(r.Dir, entry.Name())
		if _, ok := r.Set.Path(path); !ok || !entry.Type().IsRegular() || files == maxValueFiles {
			continue
		}
		if info, err := entry.Info(); err != nil || info.Size() > maxValueFile {
			continue
		}
		files++
		values = append(values, fileValues(path)...)
	}
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	values = slices.Compact(values)
	return values[:min(len(values), maxValues)]
}

var secretName = lazyregexp.New(`(?i)key|secret|token|pass|pwd|cred|auth|private|dsn|salt|cert|webhook|ur[il]$|conn`)

// fileValues reads the values of a file of lines NAME=value whose names sound like those of secrets.
func fileValues(path string) []string {
	text, err := fs.ReadFile(os.DirFS(filepath.Dir(path)), filepath.Base(path))
	if err != nil {
		return nil
	}
	var values []string
	for line := range strings.Lines(string(text)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "=")
		value = strings.Trim(strings.TrimSpace(value), `"'`)
		if !ok || !secretName().MatchString(strings.TrimSpace(name)) {
			continue
		}
		if strings.Contains(value, "://") {
			u, err := url.Parse(value)
			if err != nil || u.User == nil {
				continue
			}
			value, _ = u.User.Password()
		}
		if len(value) >= minValue {
			values = append(values, value)
		}
	}
	return values
}

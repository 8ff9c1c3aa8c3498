package skillset

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/pathglob"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/sdk"
)

const (
	maxName        = 64
	maxDescription = 1024
	maxHeader      = 8 << 10 // bytes of the front matter, generously
	maxGlobs       = 32

	// The library recurses for nesting, and takes quadratic time for keys of a mapping and for blank lines.
	maxKeys  = 256
	maxFlow  = 16
	maxBlank = 256
)

type header struct {
	slug, description string
	globs             []pathglob.Glob
	badGlobs          []int // the numbers of unreadable patterns, from 1
	globLine          int
	hidden            int // replaced characters of the description
	notForModels      bool
	notes             []*FileError // what its author should fix, although it can be used
}

func (h *header) notef(line int, code Code, format string, args ...any) {
	h.notes = append(h.notes, lined(line, problemf(code, format, args...)))
}

func lined(line int, p *FileError) *FileError {
	p.line = line
	return p
}

// parseSkill reads the SKILL.md of a directory. As the format's guide for clients asks, it refuses only what cannot be read or has no
// description, and notes the rest (agentskills.io/client-implementation, "Lenient validation").
func parseSkill(raw, directory string) (header, string, *FileError) {
	yaml, body, p := split(normalise(raw))
	if p != nil {
		return header{}, "", p
	}
	var h header
	fields, broken := parseFields(yaml)
	p = broken
	if broken != nil && broken.mendable {
		if mended, again := parseFields(h.mended(yaml)); again == nil {
			fields, p = mended, nil
		}
	}
	if p != nil {
		return header{}, "", p
	}
	if p = fields.header(&h, directory); p != nil && p.Code == CodeDescription && broken != nil {
		p = broken // quotes did not bring what its author meant
	}
	return h, strings.Trim(body, "\n"), p
}

// mended puts quotes around the values that YAML refuses or cuts, with a note for each. A value that goes on in deeper lines
// becomes one line.
func (h *header) mended(yaml string) string {
	var out strings.Builder
	lines := strings.SplitAfter(yaml, "\n")
	for i, end := 0, 1; i < len(lines); i, end = end, end+1 {
		m := entry().FindStringSubmatch(lines[i])
		if m == nil || strings.HasPrefix(m[2], "# ") {
			out.WriteString(lines[i])
			continue
		}
		column := len(m[1]) - len(strings.TrimLeft(m[1], " -"))
		for end < len(lines) && (strings.TrimSpace(lines[end]) == "" || len(lines[end])-len(strings.TrimLeft(lines[end], " ")) > column) {
			end++
		}
		more := strings.Join(lines[i+1:end], "")
		if _, _, err := parseYAML("value: " + m[2] + "\n" + more); err == nil {
			out.WriteString(strings.Join(lines[i:end], ""))
			continue
		}
		text := strings.Join(strings.Fields(m[2]+" "+more), " ")
		quote := text[:1]
		inner, quoted := strings.CutSuffix(text[1:], quote)
		if quoted && (quote == "'" || quote == `"`) && !strings.Contains(inner, quote+" ") { // 'Don't', but not "one" and "two"
			text = inner
		}
		out.WriteString(m[1] + "'" + strings.ReplaceAll(text, "'", "''") + "'" + strings.Repeat("\n", end-i))
		h.notef(i+2, CodeFrontMatter, "%s; the value was taken as a text: put it in quotes", whyQuotes(m[2], more))
	}
	return out.String()
}

// whyQuotes is why a value, with deeper lines below it, is not the text that its author meant.
func whyQuotes(value, more string) string {
	switch {
	case strings.ContainsAny(value[:1], `"'`):
		return "its quotation marks do not match"
	case strings.ContainsAny(value[:1], "[{"):
		return "it begins with a bracket, and is not a list or mapping"
	case strings.ContainsAny(value[:1], "&*!%@`?#"):
		return "it begins with a sign that YAML uses itself"
	case strings.ContainsAny(value[:1], "|>"):
		return "the lines of its text are not indented alike"
	case strings.Contains(value, " #"):
		return "YAML cuts it at the #"
	case more != "" && !strings.Contains(value, ": "):
		return "the lines below it are indented, and so a part of it"
	}
	return "a colon with a blank behind it stands in it"
}

// entry matches what stands before the value of a key or an element, and the value.
var entry = lazyregexp.New(`^( *(?:- +|(?:- +)?[A-Za-z0-9_-]+:[ \t]+))(\S.*)\n?$`)

// split finds the front matter and what follows it.
func split(text string) (yaml, body string, p *FileError) {
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimRight(first, " \t") != "---" {
		what := "it does not begin with a line ---; put that, name and description, and another --- at the top"
		if before, _, found := strings.Cut(text, "\n---\n"); found {
			what = fmt.Sprintf("the front matter begins in line %d; remove what stands before it, or make the first line ---", 2+strings.Count(before, "\n"))
		}
		return "", "", lined(1, problemf(CodeFrontMatter, "%s", what))
	}
	almost, number := 1, 1
	for at := 0; at < len(rest); {
		line, _, _ := strings.Cut(rest[at:], "\n")
		if number++; strings.TrimRight(line, " \t") == "---" {
			return rest[:at], rest[min(len(rest), at+len(line)+1):], nil
		} else if strings.HasPrefix(strings.TrimSpace(line), "---") {
			almost = number
		}
		if at += len(line) + 1; at > maxHeader {
			return "", "", problemf(CodeFrontMatter, "the front matter does not end within %d bytes", maxHeader)
		}
	}
	if almost > 1 {
		return "", "", lined(almost, problemf(CodeFrontMatter, "the front matter does not end: this line is not --- alone at its beginning"))
	}
	return "", "", lined(1, problemf(CodeFrontMatter, "the front matter does not end: a second line --- is missing"))
}

func (f fields) header(h *header, directory string) *FileError {
	if h.slug = f.slug(h, directory); h.slug == "" {
		return problemf(CodeName, "neither the name nor the directory's has a letter of a-z or a digit")
	}
	text, _ := f.values["description"].(string)
	// Lines are joined first: the newline of a folded text hides nothing.
	h.description, h.hidden = reveal(strings.Join(strings.Fields(text), " "))
	if h.description == "" {
		line, what := f.noText("description")
		return lined(line, problemf(CodeDescription, "%s", what))
	}
	f.misspelt(h)
	if n := utf8.RuneCountInString(h.description); n > maxDescription {
		h.notef(f.lines["description"], CodeDescription, "the description has %d characters; the first %d are used", n, maxDescription-1)
		h.description = sdk.LongestPrefix(h.description, math.MaxInt, maxDescription-1) + "…"
	}
	switch v := f.values[disable]; fmt.Sprint(v) {
	case "true", "True", "TRUE":
		h.notForModels = true
	case "false", "False", "FALSE":
	default:
		if f.lines[disable] > 0 {
			h.notef(f.lines[disable], CodeFrontMatter, "%s is neither true nor false, and does not count; write true or false", disable)
		}
	}
	list := f.globs("paths")
	h.globLine = cmp.Or(f.lines["paths"], f.lines["metadata.paths"])
	if list == nil {
		list = f.globs("metadata.paths")
	}
	if list == nil && h.globLine > 0 {
		h.notef(h.globLine, CodePaths, "paths is neither a text nor a list of texts, and does not count")
	}
	for i, pattern := range list {
		glob, err := pathglob.Parse(pattern)
		if err != nil || i >= maxGlobs {
			h.badGlobs = append(h.badGlobs, i+1)
			continue
		}
		h.globs = append(h.globs, glob)
	}
	return nil
}

// slug is the name, or what can be made of it or of the directory's, with a note of what is wrong; empty if nothing can.
func (f fields) slug(h *header, directory string) string {
	name, ok := f.values["name"].(string)
	line := f.lines["name"]
	switch {
	case ok && validSlug(name):
		if name != directory {
			h.notef(line, CodeName, "the name is not that of the directory")
		}
		return name
	case !ok:
		line, what := f.noText("name")
		h.notef(line, CodeName, "%s; the directory's name is used", what)
	default:
		h.notef(line, CodeName, "the name is not 1 to 64 of a-z, 0-9 and single hyphens inside; what is left of it without other characters is used")
	}
	return cmp.Or(slugOf(name), slugOf(directory))
}

const disable = "disable-model-invocation"

// noText says why a key has no text, and in which line.
func (f fields) noText(key string) (line int, what string) {
	if line, hint := f.near(key); f.lines[key] == 0 {
		return cmp.Or(line, 1), "there is no key " + key + cmp.Or(hint, "; write "+key+": and a text")
	}
	switch f.values[key].(type) {
	case string:
		what = "has an empty text; write one"
	case bare:
		what = "is not a text; put it in quotes"
	case []string:
		what = "is a list; write one text"
	default:
		what = "has no text behind the colon; write one"
	}
	return f.lines[key], "the " + key + " " + what
}

// near returns the line of a key that is another one misspelt, and a hint.
func (f fields) near(key string) (int, string) {
	for _, other := range slices.Sorted(maps.Keys(f.lines)) {
		lower := strings.ReplaceAll(strings.ToLower(other), "_", "-")
		if lower == key && other != key {
			return f.lines[other], "; this one is misspelt: keys are in lower case, with hyphens"
		}
		if len(key) > len("metadata") && other != key && suggest.DidYouMean(lower, []string{key}) != "" {
			return f.lines[other], "; this one is near it: write " + key
		}
	}
	return 0, ""
}

// misspelt notes keys that the skill lacks and that others are near.
func (f fields) misspelt(h *header) {
	for _, key := range []string{"paths", "metadata", disable} {
		if line, hint := f.near(key); line > 0 && f.lines[key] == 0 {
			h.notef(line, CodeFrontMatter, "there is no key %s%s", key, hint)
		}
	}
}

// slugOf makes a slug of a name: other characters become hyphens.
func slugOf(name string) string {
	slug := strings.Join(strings.FieldsFunc(strings.ToLower(name), func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') }), "-")
	return strings.Trim(slug[:min(len(slug), maxName)], "-")
}

// validSlug reports whether a text may name a skill: 1 to 64 of a-z, 0-9 and single hyphens inside.
func validSlug(s string) bool { return len(s) <= maxName && slugForm().MatchString(s) }

var slugForm = lazyregexp.New(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// fields are the values of the front matter by key: a string, a bare word, or a list of strings; and the line of each
// key in the file. Keys of metadata begin with "metadata.".
type fields struct {
	values map[string]any
	lines  map[string]int
}

// bare is a value without quotes that is not a text, such as true.
type bare string

// parseFields reads the front matter. A problem names a line of the file and never its text.
func parseFields(yaml string) (fields, *FileError) {
	run := 0
	for line := range strings.Lines(yaml) {
		if run++; strings.TrimSpace(line) != "" {
			run = 0
		}
		if run > maxBlank {
			return fields{}, problemf(CodeFrontMatter, "more than %d blank lines", maxBlank)
		}
	}
	doc, line, err := parseYAML(yaml)
	if err != nil {
		p := lined(line, problemf(CodeFrontMatter, "%s", err))
		p.mendable = errors.Is(err, errYAML)
		return fields{}, p
	}
	f := fields{values: map[string]any{}, lines: map[string]int{}}
	for _, pair := range pairs(doc) {
		f.add("", pair)
	}
	return f, nil
}

func (f fields) add(prefix string, pair *ast.MappingValueNode) {
	key := prefix + pair.Key.GetToken().Value
	f.lines[key] = pair.Key.GetToken().Position.Line + 1
	switch value := pair.Value.(type) {
	case *ast.StringNode:
		f.values[key] = value.Value
	case *ast.LiteralNode:
		f.values[key] = value.Value.Value
	case *ast.BoolNode:
		f.values[key] = bare(value.GetToken().Value)
	case *ast.SequenceNode:
		list := make([]string, len(value.Values)) // what is not a text becomes an empty one, which is not a pattern
		for i, element := range value.Values {
			if text, ok := element.(*ast.StringNode); ok {
				list[i] = text.Value
			}
		}
		f.values[key] = list
	case *ast.MappingNode, *ast.MappingValueNode:
		if key == "metadata" {
			for _, inner := range pairs(value) {
				f.add("metadata.", inner)
			}
		}
	case *ast.NullNode:
	default:
		f.values[key] = bare(value.GetToken().Value)
	}
}

// globs is a list of patterns, or a text of them with commas.
func (f fields) globs(key string) []string {
	if text, ok := f.values[key].(string); ok {
		return pathglob.Split(text)
	}
	list, _ := f.values[key].([]string)
	return list
}

func pairs(n ast.Node) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode: // a mapping of one pair
		return []*ast.MappingValueNode{n}
	}
	return nil
}

var (
	errYAML    = errors.New("it is not YAML that can be read (&, *, !, %, ? and << are not supported); put a text that begins with a sign, or has \": \" or \" #\" in it, in quotes")
	errMapping = errors.New("there are no keys with values between the lines ---; write name and description, each with a colon")
)

// yamlError is an errYAML with a hint.
type yamlError struct{ hint string }

func (e *yamlError) Error() string { return e.hint }
func (e *yamlError) Unwrap() error { return errYAML }

// hint says what to do about a message of the library, which may quote the file and is not shown.
func hint(message string) string {
	for _, h := range [][2]string{
		{"mapping key", "its key is there twice; remove one of them"},
		{"found character '\t'", "a tab stands before it; indent it with blanks"},
		{"non-map value", "it is not KEY: VALUE; put a colon and a blank behind the key, and blanks before a text that goes on"},
		{"mapping value", "a key stands in the value of another one; begin all keys of one mapping in the same column"},
		{"value is not allowed", "its indentation matches no line above; begin all keys of one mapping in the same column"},
	} {
		if strings.HasPrefix(message, h[0]) {
			return h[1]
		}
	}
	return errYAML.Error()
}

// parseYAML reads one document; an error has its line of the file, or 0. A panic of the library becomes an error: a
// repository brings the text.
func parseYAML(text string) (doc ast.Node, line int, err error) {
	defer func() {
		if recover() != nil {
			doc, line, err = nil, 0, errYAML
		}
	}()
	tokens := lexer.Tokenize(text)
	if line, err := vet(tokens); err != nil {
		return nil, line, err
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		var at interface {
			GetToken() *token.Token
			GetMessage() string
		}
		if !errors.As(err, &at) || at.GetToken() == nil {
			return nil, 0, errYAML
		}
		return nil, at.GetToken().Position.Line + 1, &yamlError{hint(at.GetMessage())} // line 1 is the opening "---"
	}
	if len(file.Docs) != 1 || pairs(file.Docs[0].Body) == nil {
		return nil, 2, errMapping
	}
	return file.Docs[0].Body, 0, nil
}

// vet refuses what plain YAML does without and what would make the parser work without bound.
func vet(tokens token.Tokens) (line int, err error) {
	refused := []token.Type{
		token.AnchorType, token.AliasType, token.TagType, token.DirectiveType, token.MergeKeyType, token.MappingKeyType,
		token.DocumentHeaderType, token.DocumentEndType,
	}
	keys, flow := 0, 0
	for _, t := range tokens {
		switch t.Type {
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow--
		case token.MappingValueType:
			keys++
		default:
		}
		behind := t.Type == token.CommentType && t.Prev != nil && t.Prev.Position.Line == t.Position.Line
		switch {
		case slices.Contains(refused, t.Type), behind && t.Value != "" && t.Value[0] > ' ': // a #hashtag is no comment
			return t.Position.Line + 1, errYAML
		case flow > maxFlow:
			return t.Position.Line + 1, fmt.Errorf("brackets deeper than %d", maxFlow)
		case keys > maxKeys:
			return t.Position.Line + 1, fmt.Errorf("more than %d keys", maxKeys)
		}
	}
	return 0, nil
}

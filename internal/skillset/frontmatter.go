package skillset

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/grapnelhq/grapnel/internal/lazyregexp"
	"github.com/grapnelhq/grapnel/sdk/prompttext"
)

const (
	maxName        = 64
	maxDescription = 1024
	maxHeader      = 8 << 10 // bytes of the front matter, generously

	// The library recurses for nesting, and takes quadratic time for keys of a mapping and for blank lines.
	maxKeys  = 256
	maxFlow  = 16
	maxBlank = 256
)

type header struct {
	slug, description string
	globs             []Glob
	badGlobs          []int // the numbers of unreadable patterns, from 1
	hidden            int   // replaced characters of the description
	notForModels      bool
	notes             []*FileError // what its author should fix, although it can be used
}

func (h *header) notef(line int, code Code, format string, args ...any) {
	p := problemf(code, format, args...)
	p.line = line
	h.notes = append(h.notes, p)
}

// parseSkill reads the SKILL.md of a directory. As the format's guide for clients asks, it refuses only what cannot be read or has no
// description, and notes the rest (agentskills.io/client-implementation, "Lenient validation").
func parseSkill(raw, directory string) (header, string, *FileError) {
	yaml, body, p := split(normalise(raw))
	if p != nil {
		return header{}, "", p
	}
	var h header
	fields, p := parseFields(yaml)
	if p != nil && p.mendable {
		if mended, again := parseFields(h.mended(yaml)); again == nil {
			fields, p = mended, nil
		}
	}
	if p != nil {
		return header{}, "", p
	}
	p = fields.header(&h, directory)
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
		if _, err := parseYAML("value: " + m[2] + "\n" + more); err == nil {
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
		h.notef(i+2, CodeFrontMatter, "YAML refuses or cuts this value without quotes; it was taken as a text")
	}
	return out.String()
}

// entry matches what stands before the value of a key or an element, and the value.
var entry = lazyregexp.New(`^( *(?:- +|(?:- +)?[A-Za-z0-9_-]+:[ \t]+))(\S.*)\n?$`)

// split finds the front matter and what follows it.
func split(text string) (yaml, body string, p *FileError) {
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimRight(first, " \t") != "---" {
		return "", "", problemf(CodeFrontMatter, "it does not begin with a line ---")
	}
	for at := 0; at < len(rest); {
		line, _, _ := strings.Cut(rest[at:], "\n")
		if strings.TrimRight(line, " \t") == "---" {
			return rest[:at], rest[min(len(rest), at+len(line)+1):], nil
		}
		if at += len(line) + 1; at > maxHeader {
			return "", "", problemf(CodeFrontMatter, "the front matter does not end within %d bytes", maxHeader)
		}
	}
	return "", "", problemf(CodeFrontMatter, "the front matter does not end: a second line --- is missing")
}

func (f fields) header(h *header, directory string) *FileError {
	if h.slug = f.slug(h, directory); h.slug == "" {
		return problemf(CodeName, "neither the name nor the directory's has a letter of a-z or a digit")
	}
	text, _ := f.values["description"].(string)
	// Lines are joined first: the newline of a folded text hides nothing.
	h.description, h.hidden = reveal(strings.Join(strings.Fields(text), " "))
	if h.description == "" {
		p := problemf(CodeDescription, "the front matter has no description that is a text")
		p.line = f.lines["description"]
		return p
	}
	if n := utf8.RuneCountInString(h.description); n > maxDescription {
		h.notef(f.lines["description"], CodeDescription, "the description has %d characters; the first %d are used", n, maxDescription-1)
		h.description = prompttext.Prefix(h.description, math.MaxInt, maxDescription-1) + "…"
	}
	h.notForModels = f.values["disable-model-invocation"] == bare("true")
	list := f.globs("paths")
	if list == nil {
		list = f.globs("metadata.paths")
	}
	for i, pattern := range list {
		glob, err := ParseGlob(pattern)
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
	case ok && ValidSlug(name):
		if name != directory {
			h.notef(line, CodeName, "the name is not that of the directory")
		}
		return name
	case !ok:
		h.notef(line, CodeName, "the front matter has no name that is a text; the directory's is used")
	default:
		h.notef(line, CodeName, "the name is not 1 to 64 of a-z, 0-9 and single hyphens inside; what is left of it without other characters is used")
	}
	return cmp.Or(slugOf(name), slugOf(directory))
}

// slugOf makes a slug of a name: other characters become hyphens.
func slugOf(name string) string {
	slug := strings.Join(strings.FieldsFunc(strings.ToLower(name), func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') }), "-")
	return strings.Trim(slug[:min(len(slug), maxName)], "-")
}

// ValidSlug reports whether a text may name a skill: 1 to 64 of a-z, 0-9 and single hyphens inside.
func ValidSlug(s string) bool {
	if s == "" || len(s) > maxName || s[0] == '-' || s[len(s)-1] == '-' || strings.Contains(s, "--") {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return false
		}
	}
	return true
}

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
	doc, err := parseYAML(yaml)
	if err != nil {
		p := problemf(CodeFrontMatter, "%s", err)
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
	}
}

// globs is a list of patterns, or a text of them with commas.
func (f fields) globs(key string) []string {
	if text, ok := f.values[key].(string); ok {
		return splitGlobs(text)
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

var errYAML = errors.New("it is not YAML that can be read; a text with \": \" or \" #\" in it, or beginning with * & ! % @, a bracket or a quotation mark, needs quotes")

// parseYAML reads one document. A panic of the library becomes an error: a repository brings the text.
func parseYAML(text string) (doc ast.Node, err error) {
	defer func() {
		if recover() != nil {
			doc, err = nil, errYAML
		}
	}()
	tokens := lexer.Tokenize(text)
	if err := vet(tokens); err != nil {
		return nil, err
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		// Keep only the line of the library's error, whose text quotes the file. Line 1 is the opening "---".
		var at interface{ GetToken() *token.Token }
		if errors.As(err, &at) && at.GetToken() != nil {
			return nil, fmt.Errorf("line %d: %w", at.GetToken().Position.Line+1, errYAML)
		}
		return nil, errYAML
	}
	if len(file.Docs) != 1 || pairs(file.Docs[0].Body) == nil {
		return nil, errors.New("it is not a mapping of keys to values")
	}
	return file.Docs[0].Body, nil
}

// vet refuses what plain YAML does without and what would make the parser work without bound.
func vet(tokens token.Tokens) error {
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
			return fmt.Errorf("line %d: %w", t.Position.Line+1, errYAML)
		case flow > maxFlow:
			return fmt.Errorf("line %d: brackets deeper than %d", t.Position.Line+1, maxFlow)
		case keys > maxKeys:
			return fmt.Errorf("line %d: more than %d keys", t.Position.Line+1, maxKeys)
		}
	}
	return nil
}

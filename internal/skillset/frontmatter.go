package skillset

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
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
	name, description string
	globs             []Glob
	badGlobs          []int // the numbers of unreadable patterns, from 1
	hidden            int   // replaced characters of the description
	notForModels      bool
}

func parseSkill(raw string) (header, string, *FileError) {
	yaml, body, p := split(normalise(raw))
	if p != nil {
		return header{}, "", p
	}
	fields, p := parseFields(yaml)
	if p != nil {
		return header{}, "", p
	}
	h, p := fields.header()
	return h, strings.Trim(body, "\n"), p
}

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

func (f fields) header() (header, *FileError) {
	name, ok := f["name"].(string)
	switch {
	case !ok:
		return header{}, problemf(CodeName, "the front matter has no name that is a text")
	case !ValidSlug(name):
		return header{}, problemf(CodeName, "the name is not 1 to 64 of a-z, 0-9 and single hyphens inside")
	}
	text, _ := f["description"].(string)
	// Lines are joined first: the newline of a folded text hides nothing.
	description, hidden := reveal(strings.Join(strings.Fields(text), " "))
	if description == "" {
		return header{}, problemf(CodeDescription, "the front matter has no description that is a text")
	}
	if n := utf8.RuneCountInString(description); n > maxDescription {
		return header{}, problemf(CodeDescription, "the description has %d characters; at most %d are allowed", n, maxDescription)
	}
	h := header{name: name, description: description, hidden: hidden, notForModels: f["disable-model-invocation"] == bare("true")}
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
	return h, nil
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

// fields are the values of the front matter by key: a string, a bare word, or a list of strings. Keys of metadata
// begin with "metadata.".
type fields map[string]any

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
		return fields{}, problemf(CodeFrontMatter, "%s", err)
	}
	f := fields{}
	for _, pair := range pairs(doc) {
		f.add("", pair)
	}
	return f, nil
}

func (f fields) add(prefix string, pair *ast.MappingValueNode) {
	key := prefix + pair.Key.GetToken().Value
	switch value := pair.Value.(type) {
	case *ast.StringNode:
		f[key] = value.Value
	case *ast.LiteralNode:
		f[key] = value.Value.Value
	case *ast.BoolNode:
		f[key] = bare(value.GetToken().Value)
	case *ast.SequenceNode:
		list := make([]string, len(value.Values)) // what is not a text becomes an empty one, which is not a pattern
		for i, element := range value.Values {
			if text, ok := element.(*ast.StringNode); ok {
				list[i] = text.Value
			}
		}
		f[key] = list
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
	if text, ok := f[key].(string); ok {
		return splitGlobs(text)
	}
	list, _ := f[key].([]string)
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

var errYAML = errors.New("it is not YAML that can be read; a text with \": \" in it, or beginning with * & ! % @ or a bracket, needs quotes")

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
	refused := map[token.Type]string{
		token.AnchorType: "an anchor (&)", token.AliasType: "an alias (*)", token.TagType: "a tag (!)",
		token.DirectiveType: "a directive (%)", token.MergeKeyType: "a merge key (<<)", token.MappingKeyType: "a complex key (?)",
		token.DocumentHeaderType: "a second document", token.DocumentEndType: "a second document",
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
		switch what := refused[t.Type]; {
		case what != "":
			return fmt.Errorf("line %d: %s, which is not accepted; a text that begins so needs quotes", t.Position.Line+1, what)
		case flow > maxFlow:
			return fmt.Errorf("line %d: brackets deeper than %d", t.Position.Line+1, maxFlow)
		case keys > maxKeys:
			return fmt.Errorf("line %d: more than %d keys", t.Position.Line+1, maxKeys)
		}
	}
	return nil
}

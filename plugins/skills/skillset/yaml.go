package skillset

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Bounds of the front matter beside its length: the library recurses for nesting
// and takes quadratic time for keys of one mapping and for blank lines.
const (
	maxKeys  = 256
	maxFlow  = 16
	maxBlank = 256
)

// fields are the values of the front matter that this package knows.
type fields struct {
	// texts are values that are texts, by key.
	texts map[string]string
	// bare are values written without quotes: true is no text.
	bare map[string]string
	// lists are the values of "paths" and "metadata.paths".
	lists map[string][]string
}

// parseFields reads the front matter. A problem names a line of the file and
// never its text.
func parseFields(yaml string) (fields, *problem) {
	if blankLines(yaml) > maxBlank {
		return fields{}, problemf(CodeFrontMatter, "more than %d blank lines", maxBlank)
	}
	doc, err := parseYAML(yaml)
	if err != nil {
		return fields{}, problemf(CodeFrontMatter, "%s", err)
	}
	f := fields{texts: map[string]string{}, bare: map[string]string{}, lists: map[string][]string{}}
	for _, pair := range pairs(doc) {
		f.add("", pair)
	}
	return f, nil
}

// add takes one pair of the front matter or of its metadata.
func (f fields) add(prefix string, pair *ast.MappingValueNode) {
	key := prefix + pair.Key.GetToken().Value
	switch value := pair.Value.(type) {
	case *ast.StringNode:
		f.texts[key] = value.Value
	case *ast.LiteralNode:
		f.texts[key] = value.Value.Value
	case *ast.BoolNode:
		f.bare[key] = value.GetToken().Value
	case *ast.SequenceNode:
		if isPaths(key) {
			f.lists[key] = texts(value)
		}
		return
	case *ast.MappingNode, *ast.MappingValueNode:
		if key == "metadata" {
			for _, inner := range pairs(value) {
				f.add("metadata.", inner)
			}
		}
		return
	}
	if text, ok := f.texts[key]; ok && isPaths(key) {
		f.lists[key] = splitGlobs(text)
	}
}

func isPaths(key string) bool { return key == "paths" || key == "metadata.paths" }

// texts are the elements of a list. What is no text becomes an empty one, which
// is no pattern either.
func texts(list *ast.SequenceNode) []string {
	out := make([]string, len(list.Values))
	for i, value := range list.Values {
		if text, ok := value.(*ast.StringNode); ok {
			out[i] = text.Value
		}
	}
	return out
}

// pairs are those of a mapping; nil for anything else.
func pairs(n ast.Node) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode: // a mapping of one pair
		return []*ast.MappingValueNode{n}
	}
	return nil
}

// blankLines is the length of the longest run of blank lines.
func blankLines(text string) int {
	run, longest := 0, 0
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// errYAML is the error for a text that the library cannot read.
var errYAML = errors.New("it is not YAML that can be read; a text with \": \" in it, or beginning with * & ! % @ or a bracket, needs quotes")

// parseYAML reads one document. A panic of the library is an error: a repository
// brings the text, and no text may end the process.
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
		return nil, located(err)
	}
	if len(file.Docs) != 1 || pairs(file.Docs[0].Body) == nil {
		return nil, errors.New("it is not a mapping of keys to values")
	}
	return file.Docs[0].Body, nil
}

// located keeps of the library's error the line: its text quotes the file. The
// file's first line is the one before the front matter.
func located(err error) error {
	var at interface{ GetToken() *token.Token }
	if errors.As(err, &at) && at.GetToken() != nil {
		return fmt.Errorf("line %d: %w", at.GetToken().Position.Line+1, errYAML)
	}
	return errYAML
}

// vet refuses what plain YAML does without and what would make the parser work
// without bound.
func vet(tokens token.Tokens) error {
	keys, flow := 0, 0
	for _, t := range tokens {
		what := ""
		switch t.Type {
		case token.AnchorType:
			what = "an anchor (&)"
		case token.AliasType:
			what = "an alias (*)"
		case token.TagType:
			what = "a tag (!)"
		case token.DirectiveType:
			what = "a directive (%)"
		case token.MergeKeyType:
			what = "a merge key (<<)"
		case token.MappingKeyType:
			what = "a complex key (?)"
		case token.DocumentHeaderType, token.DocumentEndType:
			what = "a second document"
		case token.MappingStartType, token.SequenceStartType:
			flow++
		case token.MappingEndType, token.SequenceEndType:
			flow--
		case token.MappingValueType:
			keys++
		default:
		}
		switch {
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

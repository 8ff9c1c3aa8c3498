package config

import (
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
)

// Bounds of a file. The library needs quadratic time for keys of one mapping and
// for blank lines in block texts, and recursion for nesting.
const (
	maxFile    = 1 << 20
	maxTokens  = 200_000
	maxEntries = 10_000
	maxDepth   = 64
	maxBlank   = 4_000_000 // sum of the squared lengths of runs of blank lines
)

// parseYAML reads one document into a tree. It reports mistakes to r, and returns nil if nothing could be parsed.
func parseYAML(text string, r *report) *node {
	if !checkBlankLines(text, r) {
		return nil
	}
	file, err := parseTokens(text, r)
	if err != nil {
		r.syntax(err)
		return nil
	}
	if file == nil || len(file.Docs) == 0 {
		return nil
	}
	c := &converter{report: r}
	return c.node(file.Docs[0].Body)
}

// parseTokens returns nil if the tokens were refused. It turns a panic of the library into an error.
func parseTokens(text string, r *report) (file *ast.File, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("this is not YAML that can be read (%v)", p)
		}
	}()
	tokens := lexer.Tokenize(text)
	if !vetTokens(tokens, r) {
		return nil, nil //nolint:nilnil // reported
	}
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

func (r *report) syntax(err error) {
	var located interface {
		GetToken() *token.Token
		GetMessage() string
	}
	if errors.As(err, &located) && located.GetToken() != nil {
		at, message := located.GetToken().Position, located.GetMessage()
		switch {
		case strings.Contains(message, "\t"):
			message = "a tab: YAML is indented with spaces"
		case !strings.Contains(message, "not allowed in this context") || r.indent(at.Line) || r.indent(at.Line+1):
		case strings.HasPrefix(message, "mapping value"):
			message = "a second key in this line; put a text with a colon in quotes"
		}
		if len(r.mistakes) == 0 {
			r.addf(at.Line, at.Column, "%s", message)
		}
		return
	}
	r.addf(1, 1, "%s", strings.TrimSpace(err.Error()))
}

// indent reports a line that stands neither below a line that opens a block nor where one of the open blocks does.
func (r *report) indent(number int) bool {
	for number <= len(r.lines) && bare(r.lines[number-1]) == "" {
		number++
	}
	if number > len(r.lines) {
		return false
	}
	own := len(r.lines[number-1]) - len(bare(r.lines[number-1]))
	var expected []string
	least := math.MaxInt
	for above := number - 1; above > 0 && least > 0; above-- {
		line := bare(r.lines[above-1])
		column := len(r.lines[above-1]) - len(line)
		columns := []int{column}
		for item, isItem := strings.CutPrefix(line, "- "); isItem; item, isItem = strings.CutPrefix(bare(item), "- ") {
			columns = append(columns, len(r.lines[above-1])-len(bare(item)))
		}
		opens := expected == nil && (line == "-" || strings.HasSuffix(strings.TrimRight(line, " "), ":")) && own > column
		if line == "" {
			continue
		}
		if opens || slices.Contains(columns, own) && own < least {
			return false
		}
		for _, column := range slices.Backward(columns) {
			if column < least {
				least, expected = column, append(expected, fmt.Sprintf("%d as in line %d", column, above))
			}
		}
	}
	if expected != nil {
		r.addf(number, own+1, "an indent of %d; expected %s", own, strings.Join(expected, ", or "))
	}
	return expected != nil
}

// bare is a line without indentation; empty for a comment.
func bare(line string) string {
	if line = strings.TrimLeft(line, " "); strings.HasPrefix(line, "#") {
		return ""
	}
	return line
}

func checkBlankLines(text string, r *report) bool {
	run, sum, number := 0, 0, 0
	for line := range strings.Lines(text) {
		number++
		if strings.TrimSpace(line) != "" {
			run = 0
			continue
		}
		run++
		if sum += 2*run - 1; sum > maxBlank {
			r.addf(number, 1, "too many blank lines")
			return false
		}
	}
	return true
}

// vetter refuses tokens that this package does not accept, or that would make the parser work without bound.
type vetter struct {
	*report

	entries int
	// columns are those of the open block collections, flow counts the open brackets, chain the keys since the last
	// bracket or comma within brackets: the parser recurses for each key of "{a: b: c: …".
	columns []int
	flow    int
	chain   int
	ended   bool
	stopped bool
}

func vetTokens(tokens token.Tokens, r *report) bool {
	v := &vetter{report: r}
	if len(tokens) > maxTokens {
		v.stopf(tokens[maxTokens], "the file is too large: more than %d words and signs", maxTokens)
	}
	for i := 0; i < len(tokens) && !v.stopped; i++ {
		v.form(tokens[i], i == 0)
		v.nesting(tokens, i)
	}
	return !v.stopped
}

func (v *vetter) stopf(t *token.Token, format string, args ...any) {
	v.addf(t.Position.Line, t.Position.Column, format, args...)
	v.stopped = true
}

func (v *vetter) form(t *token.Token, first bool) {
	if v.ended && t.Type != token.CommentType && t.Type != token.DocumentEndType {
		v.stopf(t, "a second document: a file holds one")
		return
	}
	switch t.Type {
	case token.AnchorType:
		v.refuse(t, "anchors (&)")
	case token.AliasType:
		v.refuse(t, "aliases (*)")
	case token.TagType:
		v.refuse(t, "tags (!)")
	case token.DirectiveType:
		v.refuse(t, "directives (%)")
	case token.MappingKeyType:
		v.refuse(t, "complex keys (?)")
	case token.MergeKeyType:
		v.refuse(t, "merge keys (<<)")
	case token.DocumentEndType:
		v.ended = true
	case token.DocumentHeaderType:
		// Before anything else it only begins the document.
		if !first && len(v.columns) > 0 {
			v.stopf(t, "a second document: a file holds one")
		}
	default:
	}
}

func (v *vetter) refuse(t *token.Token, what string) {
	v.stopf(t, "%s are not accepted; put a text that begins with it in quotes", what)
}

// nesting counts entries and depth. A block collection lies deeper than another
// only in a later column, or in the same one (a list below its key).
func (v *vetter) nesting(tokens token.Tokens, i int) {
	t := tokens[i]
	switch t.Type {
	case token.MappingStartType, token.SequenceStartType:
		v.flow++
		v.chain = 0
	case token.MappingEndType, token.SequenceEndType:
		v.flow = max(0, v.flow-1)
		v.chain = 0
	case token.CollectEntryType:
		v.chain = 0
	case token.SequenceEntryType:
		v.open(t.Position.Column)
	case token.MappingValueType:
		v.entries++
		if v.flow > 0 {
			v.chain++
		} else if i > 0 {
			v.open(tokens[i-1].Position.Column)
		}
	default:
	}
	if v.entries > maxEntries {
		v.stopf(t, "the file is too large: more than %d keys", maxEntries)
	} else if len(v.columns)+v.flow+v.chain > maxDepth {
		v.stopf(t, "nested deeper than %d", maxDepth)
	}
}

// open begins a block collection, which ends those in the same and later columns.
func (v *vetter) open(column int) {
	for len(v.columns) > 0 && v.columns[len(v.columns)-1] >= column {
		v.columns = v.columns[:len(v.columns)-1]
	}
	v.columns = append(v.columns, column)
}

type converter struct {
	*report

	number int    // of line
	line   []rune // the last one that place was called for
}

// place corrects the library's position of a token, which includes tabs in front of it.
func (c *converter) place(at *token.Position) (line, column int) {
	if at.Line < 1 || at.Line > len(c.lines) {
		return at.Line, at.Column
	}
	if c.number != at.Line {
		c.number, c.line = at.Line, []rune(c.lines[at.Line-1])
	}
	column = max(at.Column, 1)
	for column < len(c.line) && (c.line[column-1] == ' ' || c.line[column-1] == '\t') {
		column++
	}
	return at.Line, column
}

func (c *converter) node(n ast.Node) *node {
	if n == nil {
		return nil
	}
	out := &node{}
	out.line, out.column = c.place(n.GetToken().Position)
	switch n := n.(type) {
	case *ast.MappingNode:
		out.kind, out.flow = mappingNode, n.IsFlowStyle
		c.entries(out, n.Values)
	case *ast.MappingValueNode:
		out.kind = mappingNode
		c.entries(out, []*ast.MappingValueNode{n})
	case *ast.SequenceNode:
		out.kind, out.flow = listNode, n.IsFlowStyle
		for _, value := range n.Values {
			item := c.node(value)
			if item == nil {
				item = &node{line: out.line, column: out.column}
			}
			out.items = append(out.items, item)
		}
	case *ast.CommentGroupNode:
		return nil
	case *ast.LiteralNode:
		c.text(out, n.Value.Value)
	case *ast.StringNode:
		if n.Token.Type == token.StringType {
			c.plain(out, n.Value)
		} else {
			c.text(out, n.Value)
		}
	default:
		c.plain(out, n.GetToken().Value)
	}
	return out
}

func (c *converter) entries(out *node, values []*ast.MappingValueNode) {
	index := make(map[string]int, len(values))
	for i, pair := range values {
		key := pair.Key.GetToken()
		e := entry{key: key.Value}
		e.line, e.column = c.place(key.Position)
		if i == 0 && !out.flow {
			out.line, out.column = e.line, e.column
		}
		if first, dup := index[e.key]; dup {
			c.addf(e.line, e.column, "%.80q is there twice, first in line %d", e.key, out.entries[first].line)
			continue
		}
		if problem := badText(e.key); problem != "" {
			c.addf(e.line, e.column, "the key %s", problem)
		}
		e.value = c.node(pair.Value)
		if e.value == nil || e.value.kind == nullNode {
			// The library puts an absent value behind the colon.
			e.value = &node{line: e.line, column: e.column}
		}
		e.value.keyLine, e.value.keyColumn = e.line, e.column
		index[e.key] = len(out.entries)
		out.entries = append(out.entries, e)
	}
}

func (c *converter) text(out *node, text string) {
	out.kind, out.text = textNode, text
	if problem := badText(text); problem != "" {
		c.addf(out.line, out.column, "the text %s", problem)
	}
}

func (c *converter) plain(out *node, text string) {
	kind, value, problem := resolve(text)
	if problem != "" {
		c.addf(out.line, out.column, "%s", problem)
	}
	out.kind, out.text = kind, value
	if kind == textNode {
		c.text(out, value)
	}
}

func badText(text string) string {
	if utf8.ValidString(text) && !strings.Contains(text, "\x00") {
		return ""
	}
	return "is not UTF-8 without NUL"
}

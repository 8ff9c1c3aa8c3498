package cedar

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	cedartext "github.com/cedar-policy/cedar-go/ast"
	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
	"github.com/cedar-policy/cedar-go/x/exp/eval"
	"github.com/cedar-policy/cedar-go/x/exp/schema/validate"

	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// The bounds of rules.
const (
	maxSource = 4 << 20  // bytes of one file
	maxRule   = 16 << 10 // bytes of one rule, which bounds its depth too
	maxRules  = 20_000
)

// Problem is a mistake in a file of rules or cases.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
}

// String is the problem as compilers print theirs.
func (p Problem) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}

// rule is one policy. Its source begins at a line and column of a file.
type rule struct {
	file, source     string
	line, column     int
	policy           *ast.Policy
	condition        ast.IsNode // scope and conditions
	id, reason, code string
	asks             bool // it forbids, unless a person agrees
	sees             bool // it looks at the policies of the turn
}

// place is where a rule is, in short, and its name.
func (r *rule) place() string {
	at := fmt.Sprintf("%s:%d", filepath.Base(r.file), r.line)
	if r.id == "" {
		return at
	}
	return at + " " + quoted(r.id)
}

// key is where a rule is, and its name, as an id of a contribution; empty for none.
func (r *rule) key() string {
	if r == nil {
		return ""
	}
	words := notInIDs().ReplaceAllString(fmt.Sprintf("%s:%d#%s", filepath.Base(r.file), r.line, r.id), "-")
	return strings.Trim(words[:min(len(words), phases.MaxIDBytes)], "-#_.:/")
}

// quoted is a text for people, in one line: in JSON a second escaping would be hard to read.
func quoted(s string) string { return `"` + sdk.OneLine(s) + `"` }

// ruleset is rules, also by the actions that they may be about. It is immutable.
type ruleset struct {
	rules []*rule
	about map[string][]*rule
}

func newRuleset(rules []*rule) *ruleset {
	s := &ruleset{rules, map[string][]*rule{}}
	for _, r := range rules {
		for _, a := range actions {
			if named := r.names(); len(named) == 0 || slices.Contains(named, actionUID(a.name)) || slices.Contains(named, actionUID(string(a.phase))) {
				s.about[a.name] = append(s.about[a.name], r)
			}
		}
	}
	return s
}

// names are the actions and groups in the scope of a rule.
func (r *rule) names() []types.EntityUID {
	switch scope := r.policy.Action.(type) {
	case ast.ScopeTypeEq:
		return []types.EntityUID{scope.Entity}
	case ast.ScopeTypeIn:
		return []types.EntityUID{scope.Entity}
	case ast.ScopeTypeInSet:
		return scope.Entities
	case ast.ScopeTypeAll:
	}
	return nil
}

// The parts of a text that are rules, and of messages of Cedar's parser and validator.
var (
	leading     = lazyregexp.New(`^(?s:\s|//[^\n]*(?:\n|$)|/\*.*?\*/)*`)
	oneRule     = lazyregexp.New(`^(?s:"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/|[^;])*?;`)
	parserPlace = lazyregexp.New(`^(?:parse error at )?<input>:(\d+):(\d+)(?: ("(?:[^"\\]|\\.)*"))?: `)
	parserExact = lazyregexp.New(`^exact got .* want (.*)$`)
	notInIDs    = lazyregexp.New(`[^\w.:/#-]+`)
	quotedName  = lazyregexp.New("`(?:[^`]*[.:])?\"?(\\w+)\"?`")
)

// parse reads the rules of a text. Those with a mistake are problems.
func parse(file, source string) (rules []*rule, problems []Problem) {
	if len(source) > maxSource || !utf8.ValidString(source) || strings.Contains(source, "\x00") {
		return nil, []Problem{{file, 1, 1, fmt.Sprintf("is not a text in UTF-8 of at most %d bytes", maxSource)}}
	}
	v := validate.New(resolvedModel())
	for line, column := 1, 1; ; {
		blank := leading().FindString(source)
		line, column = position(blank, line, column)
		if source = source[len(blank):]; source == "" {
			return rules, problems
		}
		r := &rule{file: file, source: cmp.Or(oneRule().FindString(source), source), line: line, column: column}
		line, column = position(r.source, line, column)
		source = source[len(r.source):]
		problem := r.parse(v)
		if len(rules)+len(problems) == maxRules {
			problem, source = r.problem("", "there are more than %d rules", maxRules), ""
		}
		if problem != nil {
			problems = append(problems, *problem)
		} else {
			rules = append(rules, r)
		}
	}
}

// position is the place behind a text that begins at a place.
func position(text string, line, column int) (int, int) {
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		return line + strings.Count(text, "\n"), 1 + utf8.RuneCountInString(text[i+1:])
	}
	return line, column + utf8.RuneCountInString(text)
}

func (r *rule) parse(v *validate.Validator) *Problem {
	if len(r.source) > maxRule {
		return r.problem("", "the rule has %d bytes, and may have %d: divide it", len(r.source), maxRule)
	}
	var policy cedartext.Policy
	if err := policy.UnmarshalCedar([]byte(r.source)); err != nil {
		return r.syntax(strings.TrimPrefix(err.Error(), "parser error: "))
	}
	r.policy = (*ast.Policy)(&policy)
	r.condition = eval.PolicyToNode(r.policy).AsIsNode()
	if err := v.Policy("", r.policy); err != nil {
		return r.misfit(err)
	}
	ast.Inspect(ast.NewNode(r.condition), func(n ast.IsNode) bool {
		access, ok := n.(ast.NodeTypeAccess)
		r.sees = r.sees || ok && access.Value == "policies"
		return true
	})
	return r.annotate()
}

func (r *rule) annotate() *Problem {
	ask := ""
	known := map[string]*string{"id": &r.id, "reason": &r.reason, "ask": &ask, "code": &r.code}
	for _, a := range r.policy.Annotations {
		name := string(a.Key)
		if known[name] == nil {
			return r.problem("@"+name, "there is no annotation @%s%s", name, suggest.DidYouMean(name, slices.Sorted(maps.Keys(known))))
		}
		*known[name], r.asks = string(a.Value), r.asks || name == "ask"
	}
	r.reason = strings.TrimSpace(ask + " " + r.reason)
	switch {
	case r.asks && r.policy.Effect == ast.EffectPermit:
		return r.problem("@ask", "@ask is for rules that forbid")
	case r.code != "" && !phases.ValidCode(r.code):
		return r.problem("@code", "a code has small letters, digits and _")
	}
	return nil
}

// problem places a message where the rule has a word first, or at its beginning.
func (r *rule) problem(word, format string, args ...any) *Problem {
	line, column := position(r.source[:max(strings.Index(r.source, word), 0)], r.line, r.column)
	return &Problem{r.file, line, column, fmt.Sprintf(format, args...)}
}

// syntax is an error of Cedar's parser, which counts from the rule.
func (r *rule) syntax(message string) *Problem {
	p := r.problem("", "%s", message)
	at := parserPlace().FindStringSubmatch(message)
	if at == nil {
		return p
	}
	line, _ := strconv.Atoi(at[1])
	column, _ := strconv.Atoi(at[2])
	if p.Line += line - 1; line == 1 {
		column += r.column - 1
	}
	p.Column, p.Message = column, parserExact().ReplaceAllString(message[len(at[0]):], `"$1" is missing`)
	if token, err := strconv.Unquote(at[3]); err == nil && token != "" {
		p.Message += ", before `" + sdk.OneLine(token) + "`"
	}
	return p
}

// misfit is an error of the validator, which knows no places: the name that it is about is looked for.
func (r *rule) misfit(err error) *Problem {
	lines := strings.Split(err.Error(), "\n") // of all actions, in any order; those that name something say most
	slices.Sort(lines)
	message := lines[max(slices.IndexFunc(lines, func(line string) bool { return strings.Contains(line, "`") }), 0)]
	word, hint := "", ""
	if name := quotedName().FindStringSubmatch(message); name != nil {
		word = name[1]
	}
	switch known := modelNames(model); {
	case strings.Contains(message, "access to tag"):
		hint = "; ask before whether it hasTag"
	case !slices.Contains(known, word):
		hint = suggest.DidYouMean(word, known)
	case r.names() == nil:
		hint = `; name the action that the rule is about, as in action == Action::"read"`
	}
	return r.problem(word, "%s%s; see: grapnel rules schema", message, hint)
}

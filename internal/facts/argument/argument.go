// Package argument reads the arguments of a tool's call: the texts in them, and what each is for, whatever the tool.
//
// Start reading at [Decode] and [UseOf].
package argument

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
)

// Node is a JSON value. Members keep their order, and all of those with one name: programs differ in which they take.
type Node struct {
	Key  string // of a member
	Text string
	Kind byte // '{', '[', '"', or 0 for what holds no text
	Kids []Node
}

// MaxDepth bounds how deeply arguments are nested.
const MaxDepth = 64

// Decode reads JSON. Nothing at all is an empty value.
func Decode(data json.RawMessage) (Node, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return Node{}, nil
	}
	if jsonscan.Depth(data) > MaxDepth {
		return Node{}, errors.New("they are nested too deeply")
	}
	d := jsonscan.Reader(data)
	n, err := decodeValue(d)
	if err == nil {
		err = jsonscan.End(d)
	}
	return n, err
}

func decodeValue(d *jsontext.Decoder) (n Node, err error) {
	switch kind := d.PeekKind(); kind {
	case '"':
		token, err := d.ReadToken()
		return Node{Kind: '"', Text: token.String()}, err
	case '{', '[':
		n.Kind = byte(kind)
	default:
		return n, d.SkipValue()
	}
	err = jsonscan.Each(d, func() error {
		key := ""
		if n.Kind == '{' {
			token, err := d.ReadToken()
			if err != nil {
				return err
			}
			key = token.String()
		}
		kid, err := decodeValue(d)
		kid.Key = key
		n.Kids = append(n.Kids, kid)
		return err
	})
	return n, err
}

// Member returns the first text of that name.
func (n *Node) Member(names ...string) (string, bool) {
	for _, kid := range n.Kids {
		if kid.Kind == '"' && slices.Contains(names, Fold(kid.Key)) {
			return kid.Text, true
		}
	}
	return "", false
}

// commands are the folded names of members that hold a command: of its name, and of its arguments.
//
//nolint:gochecknoglobals // immutable table
var commands = []string{"command", "cmd", "program", "executable", "args", "arguments", "argv"}

// Commands are the commands of an object that has the name in one member and the arguments in others.
func (n *Node) Commands() [][]string {
	name, ok := n.Member(commands[:4]...)
	if !ok || strings.ContainsAny(name, " \t\n") {
		return nil
	}
	var list [][]string
	for _, kid := range n.Kids {
		if kid.Kind == '[' && slices.Contains(commands[4:], Fold(kid.Key)) {
			list = append(list, append([]string{name}, Texts(kid)...))
		}
	}
	return list
}

// Fold gives fileName, file_name and FILE-NAME one form.
func Fold(key string) string { return strings.ToLower(hyphens.Replace(key)) }

//nolint:gochecknoglobals // a constant
var hyphens = strings.NewReplacer("_", "", "-", "")

// Use says what a text in the arguments is for.
type Use int

// The uses.
const (
	Word    Use = iota // a path or a command: it is judged as both
	Content            // text for a file or a person: it is not judged
	Command            // a command
	Pattern            // a regular expression of a search, otherwise a glob
	Glob               // a glob that a search is limited to
	Exclude            // what a search leaves out
	Dir                // a directory that others are relative to
	Name               // the name of a member, which looks like a file
)

//nolint:gochecknoglobals // immutable table
var uses = map[string]Use{
	"content": Content, "contents": Content, "newstring": Content, "oldstring": Content, "newstr": Content, "oldstr": Content,
	"newtext": Content, "oldtext": Content, "filetext": Content, "inserttext": Content, "newsource": Content, "codeedit": Content,
	"replacement": Content, "text": Content, "body": Content, "message": Content, "title": Content, "subject": Content,
	"summary": Content, "comment": Content, "reason": Content, "explanation": Content, "justification": Content, "thought": Content,
	"query": Content, "queries": Content, "searchterm": Content, "searchquery": Content, "searchqueries": Content, "question": Content, "questions": Content, "instructions": Content, "instruction": Content, "prompt": Content,
	"description": Content, "activeform": Content, "todos": Content, "plan": Content, "header": Content, "label": Content,
	"command": Command, "cmd": Command, "commands": Command, "script": Command, "shellcommand": Command, "commandline": Command,
	"bash": Command, "argv": Command, "args": Command, "chars": Command, "stdin": Command, "code": Command, "exec": Command,
	"pattern": Pattern, "regex": Pattern, "regexp": Pattern, "searchpattern": Pattern,
	"glob": Glob, "globs": Glob, "include": Glob, "includes": Glob, "includepattern": Glob, "filepattern": Glob,
	"exclude": Exclude, "excludes": Exclude, "excludepattern": Exclude, "ignore": Exclude, "ignorepatterns": Exclude,
	"cwd": Dir, "workdir": Dir, "workingdirectory": Dir, "workingdir": Dir, "directory": Dir, "dirpath": Dir, "dir": Dir,
	"root": Dir, "basepath": Dir, "folder": Dir, "path": Dir, "directorypath": Dir,
}

// UseOf returns what a member of that name is for.
func UseOf(key string) Use { return uses[Fold(key)] }

// Text is a text in the arguments of a call, or a command that is a list of words.
type Text struct {
	Text string
	Args []string // the command; nil for a text
	Use  Use
	Key  string // the folded name of the member that it is in
	Dirs []Node // the members of the objects around it that are directories
}

// Walk visits the texts of a value, those in texts that are JSON too. A visit of a command says whether its words are done
// with; otherwise they are visited by themselves.
func (n Node) Walk(visit func(t Text) (done bool)) { n.walk(Text{}, visit) }

func (n Node) walk(t Text, visit func(t Text) bool) {
	switch n.Kind {
	case '"':
		if inner, ok := inside(n.Text, t.Use); ok {
			inner.walk(t, visit)
			return
		}
		t.Text = n.Text
		visit(t)
	case '[':
		if t.Args = Texts(n); t.Use == Command && t.Args != nil && visit(t) {
			return
		}
	case '{':
		for _, kid := range n.Kids {
			if kid.Kind == '"' && UseOf(kid.Key) == Dir {
				t.Dirs = append(slices.Clip(t.Dirs), kid)
			}
		}
		done := false
		for _, t.Args = range n.Commands() {
			done = visit(t) || done
		}
		if done {
			n.Kids = slices.DeleteFunc(slices.Clone(n.Kids), func(kid Node) bool { return slices.Contains(commands, Fold(kid.Key)) })
		}
	}
	t.Args = nil
	for _, kid := range n.Kids {
		inner := t
		if n.Kind == '{' && t.Use != Content {
			inner.Use, inner.Key = UseOf(kid.Key), Fold(kid.Key)
		}
		kid.walk(inner, visit)
		if n.Kind == '{' && inner.Use == Word && strings.ContainsAny(kid.Key, "./") {
			visit(Text{Text: kid.Key, Use: Name, Dirs: t.Dirs})
		}
	}
}

// inside is the value in a text that is JSON.
func inside(text string, use Use) (n Node, ok bool) {
	text = strings.TrimSpace(text)
	if use != Word && use != Command && use != Dir || text == "" || strings.IndexByte("{[", text[0]) < 0 {
		return n, false
	}
	n, err := Decode(json.RawMessage(text))
	return n, err == nil
}

// Texts are the elements of a list, if it has only texts.
func Texts(n Node) []string {
	var list []string
	for _, kid := range n.Kids {
		if kid.Kind != '"' {
			return nil
		}
		list = append(list, kid.Text)
	}
	return list
}

// Patched returns the files that a patch names, of the form that apply_patch takes or of git's.
func Patched(text string) []string {
	var names []string
	if !strings.Contains(text, "*** ") && !strings.Contains(text, "+++ ") {
		return nil
	}
	patch := strings.Contains(text, "*** Begin Patch")
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		for _, head := range []string{"*** Add File:", "*** Update File:", "*** Delete File:", "*** Move to:"} {
			if name, ok := strings.CutPrefix(line, head); ok && patch {
				names = append(names, strings.TrimSpace(name))
			}
		}
		for _, head := range []string{"+++ b/", "--- a/"} {
			if name, ok := strings.CutPrefix(line, head); ok && strings.Contains(text, "@@") {
				names = append(names, name)
			}
		}
	}
	return names
}

package guard

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
)

// node is a JSON value. Members keep their order, and all of those with one name: programs differ in which they take.
type node struct {
	key  string // of a member
	text string
	kind byte // '{', '[', '"', or 0 for what holds no text
	kids []node
}

const maxDepth = 64

// decode reads JSON. Nothing at all is an empty value.
func decode(data json.RawMessage) (node, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return node{}, nil
	}
	if jsonscan.Depth(data) > maxDepth {
		return node{}, errors.New("they are nested too deeply")
	}
	d := jsonscan.Reader(data)
	n, err := decodeValue(d)
	if err == nil {
		err = jsonscan.End(d)
	}
	return n, err
}

func decodeValue(d *jsontext.Decoder) (n node, err error) {
	switch kind := d.PeekKind(); kind {
	case '"':
		token, err := d.ReadToken()
		return node{kind: '"', text: token.String()}, err
	case '{', '[':
		n.kind = byte(kind)
	default:
		return n, d.SkipValue()
	}
	err = jsonscan.Each(d, func() error {
		key := ""
		if n.kind == '{' {
			token, err := d.ReadToken()
			if err != nil {
				return err
			}
			key = token.String()
		}
		kid, err := decodeValue(d)
		kid.key = key
		n.kids = append(n.kids, kid)
		return err
	})
	return n, err
}

// member returns the first text of that name.
func (n *node) member(names ...string) (string, bool) {
	for _, kid := range n.kids {
		if kid.kind == '"' && slices.Contains(names, fold(kid.key)) {
			return kid.text, true
		}
	}
	return "", false
}

// fold gives fileName, file_name and FILE-NAME one form.
func fold(key string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(key))
}

// use says what a text in the arguments is for.
type use int

const (
	useWord    use = iota // a path or a command: it is judged as both
	useContent            // text for a file or a person: it is not judged
	useCommand            // a command
	usePattern            // a regular expression of a search, otherwise a glob
	useGlob               // a glob that a search is limited to
	useExclude            // what a search leaves out
	useDir                // a directory that others are relative to
)

//nolint:gochecknoglobals // immutable table
var uses = map[string]use{
	"content": useContent, "contents": useContent, "newstring": useContent, "oldstring": useContent, "newstr": useContent, "oldstr": useContent,
	"newtext": useContent, "oldtext": useContent, "filetext": useContent, "inserttext": useContent, "newsource": useContent, "codeedit": useContent,
	"replacement": useContent, "text": useContent, "body": useContent, "message": useContent, "title": useContent, "subject": useContent,
	"summary": useContent, "comment": useContent, "reason": useContent, "explanation": useContent, "justification": useContent, "thought": useContent,
	"query": useContent, "queries": useContent, "searchterm": useContent, "searchquery": useContent, "searchqueries": useContent, "question": useContent, "questions": useContent, "instructions": useContent, "instruction": useContent, "prompt": useContent,
	"description": useContent, "activeform": useContent, "todos": useContent, "plan": useContent, "header": useContent, "label": useContent,
	"command": useCommand, "cmd": useCommand, "commands": useCommand, "script": useCommand, "shellcommand": useCommand, "commandline": useCommand,
	"bash": useCommand, "argv": useCommand, "args": useCommand, "chars": useCommand, "stdin": useCommand, "code": useCommand, "exec": useCommand,
	"pattern": usePattern, "regex": usePattern, "regexp": usePattern, "searchpattern": usePattern,
	"glob": useGlob, "globs": useGlob, "include": useGlob, "includes": useGlob, "includepattern": useGlob, "filepattern": useGlob,
	"exclude": useExclude, "excludes": useExclude, "excludepattern": useExclude, "ignore": useExclude, "ignorepatterns": useExclude,
	"cwd": useDir, "workdir": useDir, "workingdirectory": useDir, "workingdir": useDir, "directory": useDir, "dirpath": useDir, "dir": useDir,
	"root": useDir, "basepath": useDir, "folder": useDir, "path": useDir, "directorypath": useDir,
}

// scope is what is known of a value from the objects around it.
type scope struct {
	use  use
	dirs []string
}

// node judges a value and all that is in it.
func (j *judge) node(n node, s scope) *Finding {
	switch n.kind {
	case '"':
		return j.text(n.text, s)
	case '[':
		if s.use == useCommand && texts(n) != nil {
			return j.argv(texts(n), s)
		}
	case '{':
		if f := j.split(n, s); f != nil {
			return f
		}
		for _, kid := range n.kids {
			if kid.kind == '"' && uses[fold(kid.key)] == useDir {
				s.dirs = append(slices.Clip(s.dirs), kid.text)
			}
		}
	}
	for _, kid := range n.kids {
		inner := s
		if n.kind == '{' && s.use != useContent {
			inner.use = uses[fold(kid.key)]
		}
		if f := j.node(kid, inner); f != nil {
			return f
		}
		if n.kind == '{' && inner.use == useWord { // maps from files to something
			if f := j.word(kid.key, s.dirs); f != nil && strings.ContainsAny(kid.key, "./") {
				return f
			}
		}
	}
	return nil
}

// split judges a command whose name is one member and whose arguments are another.
func (j *judge) split(n node, s scope) *Finding {
	name, ok := n.member("command", "cmd", "program", "executable")
	if !ok || strings.ContainsAny(name, " \t\n") {
		return nil
	}
	for _, kid := range n.kids {
		if key := fold(kid.key); kid.kind == '[' && (key == "args" || key == "arguments" || key == "argv") {
			if f := j.argv(append([]string{name}, texts(kid)...), s); f != nil {
				return f
			}
		}
	}
	return nil
}

// texts are the elements of a list, if it has only texts.
func texts(n node) []string {
	var list []string
	for _, kid := range n.kids {
		if kid.kind != '"' {
			return nil
		}
		list = append(list, kid.text)
	}
	return list
}

// text judges one text by what it is for.
func (j *judge) text(text string, s scope) *Finding {
	for _, name := range patched(text) {
		if f := j.file(name, s.dirs); f != nil {
			return f
		}
	}
	trimmed := strings.TrimSpace(text)
	switch {
	case s.use == useContent, s.use == useExclude, strings.HasPrefix(trimmed, "*** Begin Patch"), trimmed == "":
		return nil
	case s.use == usePattern && j.searches(), s.use == useGlob && strings.HasPrefix(text, "!"):
		return nil
	case s.use == usePattern, s.use == useGlob:
		return j.meant(text, s.dirs)
	}
	if inner, err := decode(json.RawMessage(trimmed)); err == nil && (inner.kind == '{' || inner.kind == '[') {
		return j.node(inner, scope{dirs: s.dirs, use: s.use})
	}
	if f := j.file(text, s.dirs); f != nil && (s.use != useCommand || !strings.ContainsAny(trimmed, " \t")) {
		return f
	}
	if s.use == useDir || s.use == useWord && !strings.ContainsAny(trimmed, " \t\n") {
		return j.word(text, s.dirs)
	}
	return j.script(text, s.dirs, maxScripts)
}

// patched returns the files that a patch names, of the form that apply_patch takes or of git's.
func patched(text string) []string {
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

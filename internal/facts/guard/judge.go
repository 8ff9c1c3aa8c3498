package guard

import (
	"encoding/base64"
	"path"
	"slices"
	"strings"

	"github.com/grapnelhq/grapnel/internal/facts/protect"
	"github.com/grapnelhq/grapnel/internal/facts/shell"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

const (
	maxFiles   = 300 // files that are there, and whose links are followed, for one call
	maxScripts = 4   // commands inside commands
)

// judge is the work on one call.
type judge struct {
	*Guard
	*View
	tool  string            // in lower case
	files int               // files whose links were followed
	paths map[string]string // what protects them; empty for nothing
	fine  map[string]bool   // words that were judged, behind their directories

	renames bool     // names of commands may have another meaning
	taker   *reading // how commands read directories whose names others print
}

func newJudge(g *Guard, v *View) *judge {
	return &judge{Guard: g, View: v, paths: map[string]string{}, fine: map[string]bool{}}
}

// protects is [protect.Set.Path], which compares each path once.
func (j *judge) protects(name string) (pattern string, ok bool) {
	pattern, known := j.paths[name]
	if !known {
		pattern, _ = j.Set.Path(name)
		j.paths[name] = pattern
	}
	return pattern, pattern != ""
}

// searches reports whether the tool searches in files, so that its pattern is not one of names.
func (j *judge) searches() bool { return searchTool().MatchString(j.tool) }

var searchTool = lazyregexp.New(`grep|search|_rg|^[ra]g$`)

// file judges a whole text as the path of a file.
func (j *judge) file(name string, dirs []string) *Finding {
	if strings.ContainsAny(name, "\n") || web(name) {
		return nil
	}
	for _, full := range inDirs(dirs, name) {
		if p, ok := j.protects(full); ok {
			return &Finding{File: name, At: at(dirs, name), Pattern: p}
		}
	}
	for _, full := range inDirs(dirs, name) {
		if f := j.link(full); f != nil {
			return f
		}
	}
	return nil
}

// at is a name seen from the first of the directories.
func at(dirs []string, name string) string {
	if len(dirs) == 0 {
		return name
	}
	return shell.Join(dirs[0], name)
}

// web reports whether a text has the address of something elsewhere.
func web(s string) bool {
	scheme, _, found := strings.Cut(s, "://")
	return found && !strings.HasSuffix(strings.ToLower(scheme), "file")
}

// word judges one word: as a path, as a glob, and by the paths that stand in it.
func (j *judge) word(word string, dirs []string) *Finding {
	seen := word
	if len(dirs) > 0 {
		seen = strings.Join(dirs, "\x00") + "\x00" + word
	}
	if j.fine[seen] {
		return nil
	}
	f := j.unseen(word, dirs)
	j.fine[seen] = f == nil
	return f
}

func (j *judge) unseen(word string, dirs []string) *Finding {
	if shell.HasAny(word, wildcards) {
		return j.glob(word, dirs)
	}
	if f := j.file(word, dirs); f != nil {
		return f
	}
	if strings.ContainsAny(word, "*?[{") && !strings.ContainsAny(word, " \t\n") && !web(word) { // the command's own glob
		for _, own := range globs(template().ReplaceAllString(word, "")) {
			p, ok := j.Set.Glob(strings.ReplaceAll(own[strings.LastIndexAny(own, "=)")+1:], "*", string(shell.Unknown)))
			if ok && (!protect.Suffix(p) || strings.ContainsAny(word, "*?")) {
				return &Finding{File: word, At: at(dirs, word), Pattern: p}
			}
		}
	}
	if text, ok := decoded(word); ok {
		if f := j.script(text, dirs, 1); f != nil && f.Pattern != "" {
			f.How = "in base64:"
			return f
		}
	}
	return j.tokens(word, dirs)
}

var (
	letter  = lazyregexp.New(`\[([^\[\]!^])\]`)
	bracket = lazyregexp.New(`\[[^\[\]]*\]`)
	braces  = lazyregexp.New(`\{([^{}]*)\}`)
)

// globs are what programs make of a word: each choice between braces, and ? for brackets, unless it looks like a regular
// expression.
func globs(word string) []string {
	list := []string{letter().ReplaceAllString(word, "$1")}
	if !strings.Contains(word, ".*") {
		list[0] = bracket().ReplaceAllString(list[0], "?")
	}
	for i := 0; i < len(list) && len(list) < maxFiles; i++ {
		if at := braces().FindStringSubmatchIndex(list[i]); at != nil {
			for choice := range strings.SplitSeq(list[i][at[2]:at[3]], ",") {
				list = append(list, list[i][:at[0]]+choice+list[i][at[1]:])
			}
		}
	}
	return list
}

// decoded is a word of base64 that stands for a text.
func decoded(word string) (string, bool) {
	if len(word) < 8 || len(word)%4 != 0 {
		return "", false
	}
	data, err := base64.StdEncoding.DecodeString(word)
	readable := func(c byte) bool { return c >= ' ' && c < 0x7f || c == '\n' || c == '\t' }
	return string(data), err == nil && !slices.ContainsFunc(data, func(c byte) bool { return !readable(c) })
}

// meant judges a glob of a tool's own by the names that it is meant for.
func (j *judge) meant(glob string, dirs []string) *Finding {
	for _, elem := range append(strings.Split(strings.NewReplacer("{", ",", "}", ",").Replace(glob), ","), globs(glob)...) {
		if f := j.file(elem, dirs); f != nil {
			return f
		}
		if p, ok := j.Set.Glob(elem); ok && strings.ContainsAny(elem, "*?[") {
			return &Finding{File: elem, At: at(dirs, elem), Pattern: p}
		}
	}
	if f := j.file(strings.NewReplacer("{", "", "}", "", "[", "", "]", "").Replace(glob), dirs); f != nil {
		return f
	}
	return nil
}

// glob judges a word with wildcards: by the names that it is meant for, and by what it matches.
func (j *judge) glob(word string, dirs []string) *Finding {
	for _, part := range pieces(word) {
		for _, full := range inDirs(dirs, part.text) {
			if p, ok := j.Set.Glob(full); ok && shell.HasAny(path.Base(full), wildcards) {
				return &Finding{File: shell.Plain(part.text), At: at(dirs, part.text), Pattern: p}
			}
		}
		base := path.Base(part.text)
		if strings.HasPrefix(base, "."+string(shell.Unknown)) && strings.Trim(base, "."+wildcards) == "" {
			return &Finding{How: shell.Plain(part.text) + " can be any hidden file, as far as one can tell before it runs: write the name"}
		}
		if f := j.file(part.text, dirs); f != nil {
			return &Finding{File: shell.Plain(f.File), At: f.At, Pattern: f.Pattern, How: f.How}
		}
		if p, ok := j.protects(strings.ReplaceAll(part.text, string(shell.Unknown), "")); ok && strings.ContainsRune(part.text, shell.Unknown) {
			return &Finding{File: shell.Plain(part.text), At: at(dirs, part.text), Pattern: p}
		}
	}
	return nil
}

// piece is a part of a word that can be a path.
type piece struct {
	text   string
	quoted bool // has a quote on both sides
}

// template matches what is filled in by a program, such as {{.Env}} of docker inspect.
var template = lazyregexp.New(`\{\{[^{}]*\}\}`)

// pieces splits a word at the signs that are rarely in the name of a file, and often around one.
func pieces(word string) []piece {
	if strings.Contains(word, "{{") {
		word = template().ReplaceAllString(word, " ")
	}
	var list []piece
	for from := 0; from < len(word); from++ {
		end := strings.IndexAny(word[from:], " \t\n\f\r\"'`()[]{}<>=:;,|&@!#$^+")
		if end < 0 {
			end = len(word) - from
		}
		if end += from; end > from {
			quoted := from > 0 && end < len(word) && strings.IndexByte("\"'`", word[from-1]) >= 0 && strings.IndexByte("\"'`", word[end]) >= 0
			list = append(list, piece{text: word[from:end], quoted: quoted})
		}
		from = end
	}
	return list
}

// address matches what is fetched from elsewhere.
var address = lazyregexp.New(`(?i)\b(?:https?|ssh|git|wss?|ftp)://[^\s"'<>|]*`)

// tokens judges the paths that stand in a text. A name that only ends as a protected one does must look like a path:
// programs have members such as env.key.
func (j *judge) tokens(text string, dirs []string) *Finding {
	rest := text
	if strings.Contains(text, "://") {
		rest = address().ReplaceAllString(text, " ")
	}
	list := pieces(rest)
	if strings.Contains(rest, `\`) { // in the text of a program
		list = append(list, pieces(strings.NewReplacer(`\n`, "\n", `\t`, "\t", `\r`, "\n", `\0`, " ").Replace(rest))...)
	}
	for _, part := range list {
		name := strings.TrimRight(part.text, ".?")
		p, ok := j.protects(name)
		for _, d := range dirs {
			if !ok && d != "" && !shell.HasAny(d, wildcards) && !path.IsAbs(name) {
				p, ok = j.protects(d + "/" + name)
			}
		}
		if !ok {
			continue
		}
		if protect.Suffix(p) && !part.quoted && !strings.ContainsAny(name, "/\\") && part.text != text && !j.exists(name, dirs) && code(rest) {
			continue
		}
		return &Finding{File: name, At: at(dirs, name), Pattern: p}
	}
	return nil
}

// code reports whether a text is more than a path with an option before it.
func code(text string) bool { return strings.ContainsAny(text, " \t\n(){};'\"") }

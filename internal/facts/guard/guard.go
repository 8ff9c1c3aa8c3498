// Package guard says whether a tool's call would read a protected file, and takes what is in such files out of
// results.
//
// Tools are not known by name: every text in a call's arguments is judged, as a path, as a command or as a glob. What
// only is content (the text that is written to a file, a message) is not. Package protect compares names, package shell
// reads commands; this package looks at the file system: what a glob matches, where links lead, what lies in a
// directory. It opens no file, but for the values that [Guard.Result] takes out of results. Start reading at
// [Guard.Call].
package guard

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/grapnelhq/grapnel/internal/facts/argument"
	"github.com/grapnelhq/grapnel/internal/facts/protect"
	"github.com/grapnelhq/grapnel/internal/facts/secret"
	"github.com/grapnelhq/grapnel/internal/facts/shell"
)

// Guard judges by one set of patterns. It is safe for concurrent use.
type Guard struct {
	Set *protect.Set
	// Home is the user's home directory; empty if it is unknown.
	Home string
	// Secrets finds secrets in results; nil looks for none.
	Secrets *secret.Scanner
	// Values takes the values of secrets in the working directory's protected files out of results; the guard reads these
	// files.
	Values bool
}

// Finding is a protected file that a call would read.
type Finding struct {
	// File is the file as the call names it, or as it was found.
	File string
	// At is the file seen from the working directory; a name with wildcards has the marks of package shell.
	At string
	// Pattern is what protects it; empty if the call could not be judged.
	Pattern string
	// How says how the call gets at the file, where that is not plain to see.
	How string
}

// Reason tells the model why, and what it can do.
func (f *Finding) Reason() string {
	if f.Pattern == "" {
		return f.How
	}
	why := fmt.Sprintf("%s is protected (%s): what is in it is not for you. Ask the user if you need something of it", shell.Visible(f.File), f.Pattern)
	if f.How != "" {
		return f.How + " " + why
	}
	return why
}

// Call judges one call. dir is the absolute directory that relative paths start from; empty if it is unknown.
func (g *Guard) Call(tool string, arguments json.RawMessage, touched []string, dir string) *Finding {
	root, err := argument.Decode(arguments)
	if err != nil {
		return &Finding{How: "the arguments cannot be judged: " + err.Error()}
	}
	return g.Judge(tool, root, touched, NewView(dir, g.Home))
}

// Judge is Call for arguments that are decoded, and with a view that others share.
func (g *Guard) Judge(tool string, root argument.Node, touched []string, v *View) *Finding {
	j := newJudge(g, v)
	j.tool = strings.ToLower(tool)
	for _, name := range touched {
		if f := j.file(name, nil); f != nil {
			return f
		}
	}
	return cmp.Or(j.arguments(root), j.search(root), j.unjudged("the call"))
}

// unjudged refuses what names more files than were looked at.
func (j *judge) unjudged(what string) *Finding {
	if j.files <= maxFiles {
		return nil
	}
	return &Finding{How: fmt.Sprintf("%s names more than %d files, which is too much to find out where they lead: name fewer", what, maxFiles)}
}

// Prompt judges the files that a prompt mentions with @, whose content agents attach without a call.
func (g *Guard) Prompt(text, dir string) *Finding {
	j := newJudge(g, NewView(dir, g.Home))
	list, whole := mentions(text)
	if !whole {
		return &Finding{How: fmt.Sprintf("the prompt has more than %d names behind @, which is too much to find out what is a file: attach the text as a file", maxMentions)}
	}
	for _, name := range list {
		if f := j.word(name, nil); f != nil {
			f.How = "the prompt mentions a file whose content would be attached:"
			return f
		}
		if f := j.walk(name, &reading{git: true, hidden: true, lenient: true}); f != nil {
			f.How = fmt.Sprintf("the prompt mentions the directory %s:", shell.Visible(name))
			return f
		}
	}
	return j.unjudged("the prompt")
}

// maxMentions bounds the names behind @ in one prompt; each costs a look at the file system.
const maxMentions = 10_000

// mentions returns the names behind @ in a prompt: @file, @"a file", @file#L1-5, and #file:name. It is not whole if there
// are too many.
func mentions(text string) (names []string, whole bool) {
	seen := map[string]bool{}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	for i := range len(text) {
		if len(names) > maxMentions {
			return nil, false
		}
		if text[i] != '@' && !strings.HasPrefix(text[i:], "#file:") || i > 0 && wordLetter(text[i-1]) {
			continue
		}
		rest := strings.TrimPrefix(strings.TrimPrefix(text[i:], "@"), "#file:")
		name := strings.TrimRight(rest[:min(len(rest), 4096)], "\r\n")
		if q := strings.IndexAny(name, `"'`); q == 0 && strings.Count(name, name[:1]) > 1 {
			name, _, _ = strings.Cut(name[1:], name[:1])
		} else if end := unescapedSpace(name); end >= 0 {
			name = name[:end]
		}
		for _, end := range []string{"#", ","} {
			if before, _, cut := strings.Cut(name, end); cut {
				add(strings.ReplaceAll(before, `\ `, " "))
			}
		}
		name = strings.ReplaceAll(name, `\ `, " ")
		add(name)
		add(strings.TrimRight(name, ".,;:!?)]}>'\"`"))
		if end := strings.IndexFunc(name, func(r rune) bool { return r >= 0x80 }); end >= 0 {
			add(name[:end]) // agents end a name at letters and punctuation of other scripts
		}
	}
	return names, true
}

// wordLetter reports whether an @ behind the byte begins no mention. A byte of another script may be punctuation.
func wordLetter(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// unescapedSpace is where a name ends that is not in quotes.
func unescapedSpace(s string) int {
	for i := range s {
		if strings.IndexByte(" \t\r\n", s[i]) >= 0 && (i == 0 || s[i-1] != '\\') {
			return i
		}
	}
	return -1
}

// inDirs is a name seen from each of the directories, and as it is.
func inDirs(dirs []string, name string) []string {
	list := []string{name}
	if !path.IsAbs(name) {
		for _, d := range dirs {
			list = append(list, d+"/"+name)
		}
	}
	return list
}

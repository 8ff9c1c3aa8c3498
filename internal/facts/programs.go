package facts

import (
	"cmp"
	_ "embed"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/grapnelhq/grapnel/internal/facts/shell"
)

//go:embed programs.txt
var programsText string

// usage is what a program does with its words: a line of programs.txt.
type usage struct {
	operands string
	skip     int  // operands that are not files
	here     bool // without operands it works in the directory
	options  map[string]byte
	long     string // options without a value that may be cut short, as the others
}

const (
	// gnu are the lines of programs, by their first names, that take long options cut short.
	gnu      = "tac sort split shuf head diff grep sed awk ls du tee touch shred truncate chmod chgrp cp mv wget tar make xargs base64 mkdir patch chcon"
	gnuFlags = "--recursive --dereference-recursive --archive --force --create --append --update --delete --extract --get --to-stdout --time --checkpoint"
	gitFlags = "--force --force-with-lease --mirror --delete --hard --dry-run --exec --exec-path --upload-pack --receive-pack --open-files-in-pager --ext-diff --no-index --text --textconv --config --config-env"
)

// flagKinds are the kinds of options without a value.
const flagKinds = "eikpqx"

// programs has all lines by the name of the program.
//
//nolint:gochecknoglobals // made once
var programs = sync.OnceValue(func() map[string]*usage {
	all := map[string]*usage{}
	for line := range strings.Lines(programsText) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] == "#" {
			continue
		}
		u := &usage{operands: fields[1], options: map[string]byte{}}
		if u.operands[0] >= '1' && u.operands[0] <= '9' {
			u.skip, u.operands = int(u.operands[0]-'0'), u.operands[1:]
		}
		u.operands, u.here = strings.CutSuffix(u.operands, ".")
		for _, field := range fields[2:] {
			kind, names, _ := strings.Cut(field, ":")
			for name := range strings.SplitSeq(names, ",") {
				u.options[name] = kind[0]
			}
		}
		if first, _, _ := strings.Cut(fields[0], ","); shell.OneOf(gnu, first) {
			u.long = gnuFlags
		} else if first == "git" || strings.HasPrefix(first, "git:") {
			u.long = gitFlags
		}
		for name := range strings.SplitSeq(fields[0], ",") {
			all[name] = u
		}
	}
	return all
})

// option splits a word into the option that takes a value and this value, if it is attached. Of short options in one
// word it is the first one that the usage knows.
func (u *usage) option(word string) (kind byte, value string, attached bool) {
	name, value, attached := strings.Cut(word, "=")
	if kind := u.options[name]; kind != 0 || strings.HasPrefix(word, "--") {
		return kind, value, attached
	}
	for i := 1; i < len(word); i++ {
		if kind := u.options["-"+word[i:i+1]]; kind != 0 {
			return kind, word[i+1:], i+1 < len(word)
		}
	}
	return 0, "", false
}

// whole is words with long options that are cut short in full, as far as they are known.
func (u *usage) whole(words []string) []string {
	if u.long == "" {
		return words
	}
	list := slices.Clone(words)
	for i, word := range list {
		name, _, _ := strings.Cut(word, "=")
		switch {
		case word == "--", i > 0 && word != "" && word[0] != '-' && u.operands == "command":
			return list
		case strings.HasPrefix(word, "--") && u.options[name] == 0:
			known := slices.AppendSeq(strings.Fields(u.long), maps.Keys(u.options))
			known = slices.DeleteFunc(known, func(option string) bool { return !strings.HasPrefix(option, name) })
			slices.Sort(known)
			if len(known) > 0 && !slices.ContainsFunc(known, func(option string) bool { return !strings.HasPrefix(option, known[0]) }) {
				list[i] = known[0] + strings.TrimPrefix(word, name)
			}
		}
	}
	return list
}

// flags are the options among words, as facts list them.
func (u *usage) flags(words []string) []string {
	var list []string
	for _, word := range words {
		name, _, _ := strings.Cut(word, "=")
		switch {
		case word == "--":
			return list
		case len(word) < 2 || word[0] != '-':
		case word[1] == '-' || u.operands == "find" || word[1] >= '0' && word[1] <= '9' || len(word) > 2 && u.options[name] != 0:
			list = append(list, name)
		default:
			for _, letter := range name[1:] {
				list = append(list, "-"+string(letter))
				if kind := u.options["-"+string(letter)]; kind != 0 && strings.IndexByte(flagKinds, kind) < 0 {
					break // the rest is its value
				}
			}
		}
	}
	return list
}

// usageOf is the usage of a program, or of what the first words say that it does. A version at the end of the name does
// not count.
func usageOf(name string, args []string) *usage {
	for i, word := range args[1:] {
		u := programs()[name+":"+word]
		if u != nil {
			return u
		}
		if !strings.HasPrefix(word, "-") && !strings.HasPrefix(args[i], "-") {
			break
		}
	}
	if u := cmp.Or(programs()[name], programs()[strings.TrimRight(name, "-.0123456789")]); u != nil {
		return u
	}
	return &usage{operands: "n"}
}

package shell

import (
	"cmp"
	_ "embed"
	"maps"
	"slices"
	"strings"
	"sync"
)

//go:embed programs.txt
var programsText string

// Usage is what a program does with its words: a line of programs.txt.
type Usage struct {
	Operands string // their kind
	Skip     int    // operands that are not files
	Here     bool   // without operands it works in the directory
	entire   bool   // a word with one hyphen is one option
	options  map[string]byte
	long     string // options without a value that may be cut short, as the others
}

// Option is an option among words.
type Option struct {
	Kind  byte // 0 if the usage does not know it
	Value string
}

const (
	// gnu are the lines of programs, by their first names, that take long options cut short.
	gnu      = "tac sort wc split shuf head diff grep sed awk ls du tee touch shred truncate chmod chgrp cp mv wget tar make xargs base64 mkdir patch chcon"
	gnuFlags = "--all --recursive --dereference-recursive --archive --force --create --append --update --delete --extract --get --to-stdout --time --checkpoint"
	gitFlags = "--force --force-with-lease --mirror --delete --hard --dry-run --exec --exec-path --upload-pack --receive-pack --open-files-in-pager --ext-diff --no-index --text --textconv --config --config-env"
)

// flagKinds are the kinds of options without a value.
const flagKinds = "eikpqx"

// programs has all lines by the name of the program.
//
//nolint:gochecknoglobals // made once
var programs = sync.OnceValue(func() map[string]*Usage {
	all := map[string]*Usage{}
	for line := range strings.Lines(programsText) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[0] == "#" {
			continue
		}
		u := &Usage{Operands: fields[1], options: map[string]byte{}}
		if u.Operands[0] >= '1' && u.Operands[0] <= '9' {
			u.Skip, u.Operands = int(u.Operands[0]-'0'), u.Operands[1:]
		}
		u.Operands, u.entire = strings.CutSuffix(u.Operands, "!")
		u.Operands, u.Here = strings.CutSuffix(u.Operands, ".")
		for _, field := range fields[2:] {
			kind, names, _ := strings.Cut(field, ":")
			for name := range strings.SplitSeq(names, ",") {
				u.options[name] = kind[0]
			}
		}
		if first, _, _ := strings.Cut(fields[0], ","); OneOf(gnu, first) {
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

// Split returns the places of the operands among words, and the options.
func (u *Usage) Split(words []string) (operands []int, options []Option) {
	all, known := false, false
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch {
		case all: // an option is another program's
			operands = append(operands, i)
			if _, value, attached := strings.Cut(word, "="); attached && word[0] == '-' {
				options = append(options, Option{Value: value})
			}
		case word == "--":
			all = true
		case len(word) < 2 || word[0] != '-' && !u.undashed(word):
			operands = append(operands, i)
			all = OneOf("command shell", u.Operands) || u.Operands == "L" && !known
		default:
			kind, value, attached := u.option(word)
			for kind == 'q' && attached && !strings.Contains(word, "=") { // more letters follow
				options = append(options, Option{Kind: kind})
				kind, value, attached = u.option("-" + value)
			}
			kind = meant(kind, word, len(operands))
			if following := min(follow(kind, attached), len(words)-i-1); following > 0 {
				i += following
				value = words[i]
			}
			known = known || kind == 'k'
			options = append(options, Option{Kind: kind, Value: value})
		}
	}
	return operands, options
}

// follow is how many words behind an option are its values.
func follow(kind byte, attached bool) (words int) {
	if kind != 0 && !attached && strings.IndexByte(flagKinds, kind) < 0 {
		words++
	}
	if kind == '2' || kind == '3' {
		words++
	}
	return words
}

// meant is the kind of an option behind so many operands.
func meant(kind byte, word string, operands int) byte {
	switch {
	case word[0] == '+' && kind == 0:
		return 'x'
	case kind == 'D' && operands == 0:
		return 'C'
	case kind == 'D': // another option of the same name
		return 0
	}
	return kind
}

// Candidates returns the places of the operands that may be files: without a script, a pattern and the like.
func (u *Usage) Candidates(words []string) []int {
	operands, options := u.Split(words)
	if slices.ContainsFunc(options, func(o Option) bool { return o.Replaces() }) {
		return operands
	}
	return operands[min(u.Skip, len(operands)):]
}

// Replaces reports whether the option stands in place of the first operand.
func (o Option) Replaces() bool { return strings.IndexByte("RVSp", o.Kind) >= 0 }

// undashed reports whether a word is an option without a dash, such as +o, eval or if=x.
func (u *Usage) undashed(word string) bool {
	name, _, attached := strings.Cut(word, "=")
	kind := u.options[name]
	return kind == 'x' || kind != 0 && (attached || word[0] == '+') || word[0] == '+' && (u.options["+!"] != 0 || u.options["+"] != 0)
}

// option splits a word into the option that takes a value and this value, if it is attached. Of short options in one
// word it is the first one that the usage knows.
func (u *Usage) option(word string) (kind byte, value string, attached bool) {
	name, value, attached := strings.Cut(word, "=")
	if kind := u.options[name]; kind != 0 || u.entire || strings.HasPrefix(word, "--") {
		return kind, value, attached
	}
	if word[0] == '+' && u.options["+"] != 0 {
		return u.options["+"], "", false
	}
	for i := 1; i < len(word); i++ {
		if kind := u.options["-"+word[i:i+1]]; kind != 0 {
			return kind, word[i+1:], i+1 < len(word)
		}
	}
	return 0, "", false
}

// Whole is words with long options that are cut short in full, as far as they are known.
func (u *Usage) Whole(words []string) []string {
	if u.long == "" {
		return words
	}
	list := slices.Clone(words)
	for i, word := range list {
		name, _, _ := strings.Cut(word, "=")
		switch {
		case word == "--", i > 0 && word != "" && word[0] != '-' && u.Operands == "command":
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

// Flags are the options among words, as facts list them.
func (u *Usage) Flags(words []string) []string {
	var list []string
	for _, word := range words {
		name, _, _ := strings.Cut(word, "=")
		switch {
		case word == "--":
			return list
		case len(word) < 2 || word[0] != '-':
		case word[1] == '-' || u.entire || u.Operands == "find" || word[1] >= '0' && word[1] <= '9' || len(word) > 2 && u.options[name] != 0:
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

// UsageOf is the usage of a program, or of what the first words say that it does. A version at the end of the name does
// not count.
func UsageOf(name string, args []string) *Usage {
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
	return &Usage{Operands: "n"}
}

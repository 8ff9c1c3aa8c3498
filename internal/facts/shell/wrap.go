package shell

import (
	"path"
	"strings"
)

// wrapper is a command that runs the one behind its options.
type wrapper struct {
	flags, values string // letters of options without and with a value
	operands      int    // words before the command
	sets          bool   // words such as X=1 may stand before the command
	none          string // letters of options with which no command runs
}

//nolint:gochecknoglobals // immutable table
var wrappers = map[string]wrapper{
	"sudo": {flags: "AbEHinPSsBkN", values: "ugpCrtThDR", sets: true, none: "lvVKe"}, "doas": {flags: "nLs", values: "uC"}, "env": {flags: "iv0", values: "uC", sets: true},
	"nohup": {}, "setsid": {flags: "cfw"}, "time": {flags: "pvalq", values: "fo"}, "nice": {flags: "0123456789", values: "n"}, "ionice": {flags: "t", values: "cnpPu"},
	"timeout": {flags: "fpv", values: "sk", operands: 1}, "gtimeout": {flags: "fpv", values: "sk", operands: 1}, "command": {flags: "p", none: "vV"}, "builtin": {},
	"exec": {flags: "cl", values: "a"}, "stdbuf": {values: "ioe"}, "busybox": {}, "noglob": {}, "nocorrect": {}, "chronic": {flags: "ev"}, "caffeinate": {flags: "dimsu", values: "tw"},
	"toybox": {}, "unbuffer": {flags: "p"}, "setarch": {operands: 1}, "taskset": {flags: "a", operands: 1, none: "pc"}, "chrt": {flags: "bfiorR", operands: 1, none: "pm"},
}

// Wraps reports whether a command runs the one that follows it.
func Wraps(name string) bool {
	_, ok := wrappers[name]
	return ok
}

// Unwrap drops sudo, env and the like from the front of a command, with their options, and returns the words such as X=1
// among them. A command that runs nothing stays as it is. It is not ok if the words before the command cannot be told
// from the command.
func Unwrap(args []string) (inner, sets []string, ok bool) {
	ok = true
	for range maxAlts {
		w, wraps := wrappers[(&Command{Args: args}).Name()]
		if !wraps {
			return args, sets, ok
		}
		rest, given, fine := w.skip(args[1:])
		ok = ok && fine
		if len(rest) == 0 {
			return args, sets, ok
		}
		args, sets = rest, append(sets, given...)
	}
	return args, sets, false
}

// skip returns the command behind the words of a wrapper; nothing if there is none.
func (w *wrapper) skip(args []string) (rest, sets []string, ok bool) {
	ok = true
	operands := w.operands
	for len(args) > 0 {
		word := args[0]
		name, value, assigns := strings.Cut(word, "=")
		switch {
		case word == "--":
			w = &wrapper{sets: w.sets}
		case strings.HasPrefix(word, "--"):
			fine, takes := longOption(name)
			ok = ok && fine
			if takes && !assigns {
				args = args[min(1, len(args)-1):]
			}
		case len(word) > 1 && word[0] == '-' && strings.ContainsAny(word[1:2], w.none):
			return nil, sets, ok
		case len(word) > 1 && word[0] == '-':
			fine, takes := w.option(word[1:])
			ok = ok && fine
			if takes {
				args = args[min(1, len(args)-1):]
			}
		case w.sets && assigns && name != "" && !strings.Contains(path.Clean(name), "/"):
			sets = append(sets, name+"="+value)
		case operands > 0:
			operands--
		default:
			return args, sets, ok
		}
		args = args[1:]
	}
	return nil, sets, ok
}

// longOption is option for a long one.
func longOption(name string) (ok, takes bool) {
	takes = OneOf("--user --group --unset --chdir --signal --kill-after --adjustment --input --output --error --class --classdata --prompt --host", name)
	return name != "--split-string" && name != "--chdir" && name != "--chroot", takes
}

// option reads a cluster of options: whether all are known, and do not say where or what else runs, and whether the
// next word is the value of the last one.
func (w *wrapper) option(letters string) (ok, takes bool) {
	for i, letter := range letters {
		if strings.ContainsRune(w.values, letter) {
			return !strings.ContainsRune("DRC", letter), i+1 == len(letters)
		}
		if !strings.ContainsRune(w.flags, letter) {
			return false, false
		}
	}
	return true, false
}

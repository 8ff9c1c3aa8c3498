package shell

import (
	"slices"
	"strings"
)

// Action is what find does with the files that it finds.
type Action struct {
	Name string   // such as -exec or -fprint; -print for what is printed, with all tests
	Args []string // the command, or the file that is written
	// Tests are the words that say which files: those behind the last -o.
	Tests []string
}

// Find takes a command of find apart.
func Find(args []string) (roots []string, actions []Action) {
	at := 1
	for ; at < len(args) && !expression(args[at]); at++ {
		if !OneOf("-H -L -P", args[at]) {
			roots = append(roots, args[at])
		}
	}
	if len(roots) == 0 {
		roots = []string{"."}
	}
	var tests, branch []string
	open := 0
	for i := at; i < len(args); i++ {
		word := args[i]
		a := Action{Name: word, Tests: slices.Clip(branch)}
		switch {
		case OneOf("-exec -execdir -ok -okdir", word):
			end := i + 1
			for end < len(args) && args[end] != ";" && (args[end] != "+" || args[end-1] != "{}") {
				end++
			}
			a.Args, i = args[i+1:end], end
		case OneOf("-fprint -fprint0 -fls -fprintf", word) && i+1 < len(args):
			i++
			a.Args = args[i : i+1]
		case word != "-delete" && word != "-files0-from" && !strings.ContainsRune(word, Unknown):
			open += strings.Count(word, "(") - strings.Count(word, ")")
			if tests, branch = append(tests, word), append(branch, word); open == 0 && OneOf("-o -or ,", word) {
				branch = nil
			}
			continue
		}
		actions = append(actions, a)
	}
	return roots, append(actions, Action{Name: "-print", Tests: tests})
}

func expression(word string) bool {
	return len(word) > 1 && word[0] == '-' && !OneOf("-H -L -P", word) || word == "(" || word == "!"
}

// Limits says which files the tests of find let through: those with one of these names, but for the exceptions, and no
// links if only files are. Without names there is no limit.
func Limits(tests []string) (names, except []string, files bool) {
	named, all := false, true
	for i, word := range append(slices.Clip(tests), "-o") {
		value := strings.Join(tests[min(i+1, len(tests)):min(i+2, len(tests))], "")
		switch negated := i > 0 && OneOf("! -not", tests[i-1]); {
		case negated && word == "(":
			return nil, nil, false
		case negated && OneOf("-name -iname -path -ipath -wholename", word):
			except = append(except, value)
		case negated:
		case OneOf("-o -or ,", word):
			named, all = false, all && named
		case OneOf("-name -iname", word):
			named, names = true, append(names, value)
		case word == "-type":
			files = value == "f"
		}
	}
	if !all {
		names = nil
	}
	if OneOf("-o -or ,", tests...) { // they may be of one of the alternatives
		except, files = nil, false
	}
	return names, except, files
}

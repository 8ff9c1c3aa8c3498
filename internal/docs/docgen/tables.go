package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/grapnelhq/grapnel/gateway"
	"github.com/grapnelhq/grapnel/internal/cond"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/cedar"
)

func phaseTable(string) (string, error) {
	var rows [][]string
	for _, row := range phases.Standard().Rows() {
		kinds := make([]string, len(row.Kinds))
		for i, k := range row.Kinds {
			kinds[i] = string(k)
		}
		time := "background"
		if !row.Queue {
			time = row.Budget.String()
		}
		field := strings.TrimSuffix(reflect.TypeOf(row.NewInput()).Elem().Name(), "Input")
		rows = append(rows, []string{code(string(row.Phase)), code(field), row.When, codes(kinds), time})
	}
	return grid([]string{"phase", "handler field", "when", "may contribute", "time"}, rows), nil
}

func prefixed(prefix string) func(name string) bool {
	return func(name string) bool {
		rest, ok := strings.CutPrefix(strings.ToUpper(name[:1])+name[1:], prefix)
		return ok && rest != ""
	}
}

func kindTable(root string) (string, error) {
	kinds, err := constants(root, "phases", prefixed("Kind"))
	var rows [][]string
	for _, k := range kinds {
		rows = append(rows, []string{code(k.value), code("phases." + strings.TrimPrefix(k.name, "Kind")), k.doc})
	}
	return grid([]string{"kind", "type", "what it does"}, rows), err
}

func causeTable(root string) (string, error) {
	causes, err := constants(root, "phases", prefixed("Cause"))
	var rows [][]string
	for _, c := range causes {
		if phases.Cause(c.value).Failure() {
			rows = append(rows, []string{code(c.value), c.doc})
		}
	}
	return grid([]string{"cause", "what happened"}, rows), err
}

// codeTable lists the codes of diagnostics, runs and events that the engine's packages
// declare and that are not causes, by name.
func codeTable(root string) (string, error) {
	return engineWords(root, "code", func(dir, name string) bool {
		return prefixed("Code")(name) || dir == offReasons && prefixed("Reason")(name)
	})
}

func reasonTable(root string) (string, error) {
	return engineWords(root, "reason", func(dir, name string) bool { return dir != offReasons && prefixed("Reason")(name) })
}

const offReasons = "internal/engine/plan" // the package whose reasons are those of hooks that are off: codes of runs

// engineWords lists constants of the engine's packages. Of two with the same value the
// first one, by the package's name, is shown.
func engineWords(root, what string, match func(dir, name string) bool) (string, error) {
	dirs, err := engine(root)
	if err != nil {
		return "", err
	}
	words := map[string]constant{}
	for _, dir := range dirs {
		found, err := constants(root, dir, func(name string) bool { return match(dir, name) })
		if err != nil {
			return "", err
		}
		for _, c := range found {
			if words[c.value].value == "" && !phases.Cause(c.value).Failure() {
				words[c.value] = c
			}
			if c.doc == "" {
				return "", fmt.Errorf("%s: %s has no doc comment", dir, c.name)
			}
		}
	}
	var rows [][]string
	for _, value := range slices.Sorted(maps.Keys(words)) {
		rows = append(rows, []string{code(value), words[value].doc})
	}
	return grid([]string{what, "meaning"}, rows), nil
}

func functionTable(string) (string, error) {
	var rows [][]string
	for _, f := range cond.Functions() {
		rows = append(rows, []string{codes(strings.Split(strings.ReplaceAll(f[0], "), ", ")\n"), "\n")), f[1]})
	}
	return grid([]string{"function", "result"}, rows), nil
}

func ruleTable(string) (string, error) {
	var rows [][]string
	for _, row := range cedar.Table() {
		rows = append(rows, []string{code(row[0]), row[1], code(row[2]), codes(strings.Fields(row[3]))})
	}
	return grid([]string{"action", "is", "resource", "its attributes"}, rows), nil
}

func featureTable(string) (string, error) { return codes(phases.Features()) + "\n", nil }

type rpcSchema struct {
	Methods map[string]struct {
		Description string `json:"description"`
		Right       string `json:"right"`
	} `json:"methods"`
	Errors []struct {
		Number      int    `json:"number"`
		Code        string `json:"code"`
		Description string `json:"description"`
	} `json:"errors"`
}

func readRPC() (*rpcSchema, error) {
	data, err := gateway.Schema()
	if err != nil {
		return nil, err
	}
	s := &rpcSchema{}
	return s, json.Unmarshal(data, s)
}

// methodTable lists the methods by what they are about and the right that they need; "grapnel schema rpc" has the rest.
func methodTable(string) (string, error) {
	s, err := readRPC()
	if err != nil {
		return "", err
	}
	groups := map[[2]string][]string{}
	for _, name := range slices.Sorted(maps.Keys(s.Methods)) {
		of := [2]string{name[:strings.LastIndex(name, "/")+1], cmp.Or(s.Methods[name].Right, "everybody")}
		groups[of] = append(groups[of], strings.TrimPrefix(name, of[0]))
	}
	var rows [][]string
	for _, of := range slices.SortedFunc(maps.Keys(groups), func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) }) {
		rows = append(rows, []string{cmp.Or(of[0], "the gateway"), codes(groups[of]), of[1]})
	}
	return grid([]string{"about", "methods", "right"}, rows), nil
}

func errorTable(string) (string, error) {
	s, err := readRPC()
	if err != nil {
		return "", err
	}
	var rows [][]string
	for _, e := range s.Errors {
		rows = append(rows, []string{strconv.Itoa(e.Number), code(e.Code), e.Description})
	}
	return grid([]string{"number", "code", "meaning"}, rows), nil
}

func metricTable(string) (string, error) {
	var rows [][]string
	for _, m := range gateway.Metrics() {
		rows = append(rows, []string{code(m.Name), m.Type, codes(m.Labels)})
	}
	return grid([]string{"metric", "type", "labels"}, rows), nil
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/plugins/cedar"
)

func (a *app) rulesCommands() *cobra.Command {
	sets := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return cedar.Sets(), cobra.ShellCompDirectiveNoFileComp
	}
	return group("rules", "Rules in Cedar: what calls of tools may do",
		completing(command[rulesAdded](a, "add NAME...", "Put sets of rules beside the configuration, and in force", nil, a.rulesAdd), sets),
		command[rulesList](a, "list", "Show the sets of rules that come along, and the rules in force", noArgs(), a.rulesList),
		completing(command[rulesText](a, "show NAME", "Print a set of rules that comes along", exactlyOne("rules show needs the NAME of a set"), a.rulesShow), sets),
		command[rulesChecked](a, "check [FILE]...", "Check rules, and run the cases beside them", nil, a.rulesCheck),
		command[rulesSuggested](a, "suggest", "Print rules, in comments, about what your agents did most", noArgs(), a.rulesSuggest),
		command[rulesText](a, "schema", "Print what rules can be about, as a schema of Cedar", noArgs(), a.rulesSchema))
}

// knownSet returns a set of rules with its cases.
func knownSet(name string) (rules, cases string, err error) {
	rules, cases, ok := cedar.Set(name)
	if !ok {
		return "", "", usagef("there is no set of rules %q%s; see: grapnel rules list", name, suggest.DidYouMean(name, cedar.Sets()))
	}
	return rules, cases, nil
}

type rulesAdded struct {
	Files   []addedFile `json:"files"`
	Config  string      `json:"config"  jsonschema:"the configuration file"`
	Plugin  string      `json:"plugin"  jsonschema:"the plugin that has the rules in force"`
	Written bool        `json:"written" jsonschema:"the plugin was declared now"`
}

type addedFile struct {
	File  string `json:"file"`
	State string `json:"state" jsonschema:"created, kept as it was the same, or changed by you and kept"`
}

func (a *app) rulesAdd(_ context.Context, _ *noFlags, names []string) error {
	if len(names) == 0 {
		return usagef("rules add needs the NAME of a set: %s", alternatives(cedar.Sets()))
	}
	path, err := a.configPlace()
	if err != nil {
		return err
	}
	dir := filepath.Join(filepath.Dir(path), "rules")
	files := map[string][]byte{}
	for _, name := range names {
		rules, cases, err := knownSet(name)
		if err != nil {
			return err
		}
		files[filepath.Join(dir, name+".cedar")], files[filepath.Join(dir, name+".cases")] = []byte(rules), []byte(cases)
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		files[path] = firstConfig()
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return unable(err)
	}
	r := &rulesAdded{Config: path}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		state, err := putRules(file, files[file])
		if err != nil {
			return unable(err)
		}
		r.Files = append(r.Files, addedFile{file, state})
	}
	if err := r.declare(filepath.Join(dir, "*.cedar")); err != nil {
		return err
	}
	return a.print(r, func() {
		for _, f := range r.Files {
			a.printf("%s: %s\n", f.State, clean(f.File))
		}
		if r.Written {
			a.printf("declared the plugin %s in %s\n", r.Plugin, clean(r.Config))
		}
		a.println("\nnext: grapnel backtest shows what they would have denied. In force: grapnel install AGENT; where a gateway runs: grapnel config reload")
	})
}

// putRules makes a file unless it is there, and says what became of it.
func putRules(path string, data []byte) (state string, err error) {
	if err := createNew(path, data); !errors.Is(err, fs.ErrExist) {
		return "created", err
	}
	now, err := readRegular(path)
	if bytes.Equal(now, data) {
		return "kept", err
	}
	return "changed by you, and kept", err
}

// declare declares the plugin in the configuration, unless there is one that reads the files.
func (r *rulesAdded) declare(pattern string) error {
	cfg, err := config.Load(r.Config)
	if err != nil {
		return err
	}
	for name, own := range rulePlugins(cfg) {
		if r.Plugin = name; slices.Contains(own.Files, pattern) {
			return nil
		}
	}
	if r.Plugin != "" {
		return refused(fmt.Errorf("the plugin %s is declared and does not read the new files; add %s to its config.files in %s", r.Plugin, pattern, r.Config))
	}
	r.Plugin, r.Written = rulesPlugin, true
	return editFile(r.Config, func(data []byte) ([]byte, error) { return declareRules(data, "files", "["+strconv.Quote(pattern)+"]") })
}

// rulesPlugin is the name that the plugin is declared by.
const rulesPlugin = "rules"

// offered is a configuration with all sets of rules that come along.
func offered() (*config.Config, error) {
	sets, err := json.Marshal(cedar.Sets())
	if err != nil {
		return nil, err
	}
	text, err := declareRules([]byte("version: 1\n"), "sets", string(sets))
	if err != nil {
		return nil, err
	}
	return config.Parse(text, "the rules that come along")
}

// pluginsKey is the line of a configuration that begins the list of plugins, and what the first of them is indented by.
var pluginsKey = lazyregexp.New(`(?m)^plugins:([ \t]*\[\])?[^\n]*(?:\n|$)(?:[ \t]*(?:#.*)?\r?\n)*([ \t]*)-?`)

// declareRules returns a configuration with the plugin for the rules as the first of its list, the rest as it was. key and list
// say where it has rules from.
func declareRules(data []byte, key, list string) ([]byte, error) {
	entry := func(indent string) string {
		return indent + strings.Join([]string{
			"- name: " + rulesPlugin + " # rules in Cedar; see: grapnel rules --help", "  builtin: cedar", "  grants: {contribute: [decision], see: [arguments, facts]}",
			"  subscriptions: {" + rulesPlugin + ".call: {phase: tool.pre_call, on_failure: fail_closed}}", "  config: {" + key + ": " + list + "}",
		}, "\n"+indent) + "\n"
	}
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	edited := strings.TrimRight(text, "\n") + "\nplugins:\n" + entry("  ")
	if at := pluginsKey().FindStringSubmatchIndex(text); at != nil {
		first, rest, _ := strings.Cut(text[at[0]:], "\n")
		indent := text[at[4]:at[5]]
		if at[2] >= 0 {
			first, indent = strings.Replace(first, "[]", "", 1), "  "
		}
		edited = text[:at[0]] + strings.TrimRight(first, " ") + "\n" + entry(indent) + rest
	}
	if text != string(data) {
		edited = strings.ReplaceAll(edited, "\n", "\r\n")
	}
	before, err := config.Parse(data, "the configuration")
	if err != nil {
		return nil, err
	}
	after, err := config.Parse([]byte(edited), "the edited configuration")
	if err != nil || len(after.Plugins) != len(before.Plugins)+1 {
		return nil, fmt.Errorf("its layout cannot be edited safely; add to its plugins:\n%s", entry("  "))
	}
	return []byte(edited), nil
}

// ruleConfig is where a plugin has rules from.
type ruleConfig struct {
	Files    []string `json:"files"`
	Sets     []string `json:"sets"`
	Policies string   `json:"policies"`
}

// rulePlugins are the plugins that have rules, by name. They refuse another configuration themselves.
func rulePlugins(cfg *config.Config) iter.Seq2[string, ruleConfig] {
	return func(yield func(string, ruleConfig) bool) {
		for i := range cfg.Plugins {
			var own ruleConfig
			if p := &cfg.Plugins[i]; p.Builtin == "cedar" && (len(p.Config) == 0 || json.Unmarshal(p.Config, &own) == nil) && !yield(p.Name, own) {
				return
			}
		}
	}
}

type rulesList struct {
	Sets  []ruleSet  `json:"sets"  jsonschema:"what comes along"`
	Files []ruleFile `json:"files" jsonschema:"what is in force"`
}

type ruleSet struct {
	Name  string `json:"name"`
	About string `json:"about" jsonschema:"its first comment"`
	Rules int    `json:"rules" jsonschema:"how many rules it has"`
}

type ruleFile struct {
	Plugin string `json:"plugin" jsonschema:"the plugin that has it in force; empty if it was named"`
	File   string `json:"file"   jsonschema:"empty for the text in the configuration"`
	cedar.Report
}

func (a *app) rulesList(ctx context.Context, _ *noFlags, _ []string) error {
	r := &rulesList{Sets: []ruleSet{}}
	for _, name := range cedar.Sets() {
		rules, _, _ := cedar.Set(name)
		first, _, _ := strings.Cut(rules, "\n")
		_, about, _ := strings.Cut(first, ": ")
		r.Sets = append(r.Sets, ruleSet{name, about, cedar.Check(ctx, name, rules, "").Rules})
	}
	var err error
	if r.Files, err = a.rulesInForce(ctx); err != nil {
		return err
	}
	return a.print(r, func() {
		printList(a, "sets", "set|>rules|about", r.Sets, func(s *ruleSet) cells { return cells{s.Name, s.Rules, s.About} })
		a.printRuleFiles("in force", r.Files)
	})
}

func (a *app) printRuleFiles(title string, files []ruleFile) {
	printList(a, title, "file|?plugin|>rules|>cases|>problems", files, func(f *ruleFile) cells { return cells{f.File, f.Plugin, f.Rules, f.Cases, len(f.Problems)} })
	for _, f := range files {
		for _, p := range f.Problems {
			a.println(printable(p.String()))
		}
	}
}

// rulesInForce checks the rules of the configuration.
func (a *app) rulesInForce(ctx context.Context) ([]ruleFile, error) {
	cfg, _, err := a.loadConfig()
	if err != nil {
		return nil, err
	}
	list := []ruleFile{}
	for plugin, own := range rulePlugins(cfg) {
		if own.Policies != "" {
			list = append(list, ruleFile{plugin, "", cedar.Check(ctx, "policies", own.Policies, "")})
		}
		for _, name := range own.Sets {
			rules, cases, err := knownSet(name)
			if err != nil {
				return nil, err
			}
			list = append(list, ruleFile{plugin, name + ".cedar (comes along)", cedar.Check(ctx, name, rules, cases)})
		}
		for _, pattern := range own.Files {
			found, err := cedar.Files(pattern)
			if err != nil {
				return nil, usagef("plugin %s: %w", plugin, err)
			}
			for _, file := range found {
				checked, err := checkRules(ctx, file)
				if err != nil {
					return nil, err
				}
				list = append(list, ruleFile{plugin, file, checked})
			}
		}
	}
	return list, nil
}

// checkRules checks a file, and runs the cases beside it.
func checkRules(ctx context.Context, file string) (cedar.Report, error) {
	var rules, cases []byte
	_, err := cedar.Stat(file)
	if err == nil {
		rules, err = readRegular(file)
	}
	if err == nil {
		cases, err = readRegular(strings.TrimSuffix(file, filepath.Ext(file)) + ".cases")
	}
	if err != nil {
		return cedar.Report{}, usagef("%s: %w", file, unwrapPath(err))
	}
	return cedar.Check(ctx, file, string(rules), string(cases)), nil
}

type rulesChecked struct {
	Files []ruleFile `json:"files" jsonschema:"what was checked"`
}

func (a *app) rulesCheck(ctx context.Context, _ *noFlags, files []string) (err error) {
	r := &rulesChecked{Files: []ruleFile{}}
	for _, file := range files {
		checked, err := checkRules(ctx, file)
		if err != nil {
			return err
		}
		r.Files = append(r.Files, ruleFile{"", file, checked})
	}
	if len(files) == 0 {
		if r.Files, err = a.rulesInForce(ctx); err != nil {
			return err
		}
	}
	bad := slices.ContainsFunc(r.Files, func(f ruleFile) bool { return len(f.Problems) > 0 })
	return a.answer(!bad, r, func() {
		if len(r.Files) == 0 {
			a.println("there are no rules in force; see: grapnel rules list")
		}
		a.printRuleFiles("rules", r.Files)
	})
}

type rulesText struct {
	Text string `json:"text"`
}

func (a *app) rulesShow(_ context.Context, _ *noFlags, args []string) error {
	rules, _, err := knownSet(args[0])
	if err != nil {
		return err
	}
	return a.print(rulesText{rules}, func() { a.printf("%s", rules) })
}

func (a *app) rulesSchema(context.Context, *noFlags, []string) error {
	return a.print(rulesText{cedar.Schema()}, func() { a.printf("%s", cedar.Schema()) })
}

package cedar

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

const maxFiles = 256

// keeper has the rules in force, and reads them again when a file changes.
type keeper struct {
	config  config
	prompts bool // there is a rule about prompts
	sees    bool // there is a rule that looks at the turn's policies

	mu       sync.Mutex
	rules    *ruleset
	stamp    string // of the files that were read last
	mistake  string // in them
	reported string // the turn in which that was said
}

// newKeeper reads the rules of a configuration. Errors are [*phases.ConfigError].
func newKeeper(cfg *config) (*keeper, error) {
	k := &keeper{config: *cfg}
	files, stamp, err := k.find()
	if err != nil {
		return nil, err
	}
	if k.rules, err = k.read(files); err != nil {
		return nil, err
	}
	k.stamp = stamp
	k.prompts, k.sees = k.rules.needs()
	return k, nil
}

// needs reports whether rules are about prompts, and whether they look at the turn's policies.
func (s *ruleset) needs() (prompts, sees bool) {
	prompts = slices.ContainsFunc(s.about["prompt"], func(r *rule) bool { return r.names() != nil })
	return prompts, slices.ContainsFunc(s.rules, func(r *rule) bool { return r.sees })
}

// judge evaluates the rules in force.
func (k *keeper) judge(ctx context.Context, sc *scene, turn string) ([]phases.Contribution, error) {
	rules, remark := k.current(turn)
	decision, err := rules.judge(ctx, sc, k.config.Default == "deny")
	if err != nil {
		return nil, err
	}
	var list []phases.Contribution
	if decision != nil {
		list = append(list, decision)
	}
	if remark != "" {
		list = append(list, &phases.ManifestDiagnostic{Code: "rules_not_reloaded", Severity: phases.SeverityError, Message: remark, SafeForUser: true})
	}
	return list, nil
}

// current returns the rules in force. If the files have changed and cannot be used, it says so once a turn.
func (k *keeper) current(turn string) (rules *ruleset, remark string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if files, stamp, err := k.find(); err != nil {
		k.stamp, k.mistake = "", err.Error()
	} else if stamp != k.stamp {
		k.stamp, k.mistake = stamp, k.reload(files)
	}
	if k.mistake != "" && (k.reported != turn || turn == "") {
		k.reported = turn
		remark = "the rules have changed and cannot be used, those of before are in force: " + k.mistake
	}
	return k.rules, remark
}

func (k *keeper) reload(files []string) (mistake string) {
	rules, err := k.read(files)
	if err != nil {
		return err.Error()
	}
	if prompts, sees := rules.needs(); prompts && !k.prompts || sees && !k.sees {
		return "a rule is the first about prompts or context.policies: start the gateway again"
	}
	k.rules = rules
	return ""
}

// find returns the files of the configuration, and a text that is another one when they have changed.
func (k *keeper) find() (files []string, stamp string, err error) {
	var b strings.Builder
	for i, pattern := range k.config.Files {
		found, err := Files(pattern)
		for _, file := range found {
			info, failed := Stat(file)
			if failed != nil {
				err = fmt.Errorf("%s: %w", file, failed)
				break
			}
			fmt.Fprintln(&b, file, info.Size(), info.ModTime().UnixNano())
		}
		if files = append(files, found...); len(files) > maxFiles {
			err = fmt.Errorf("there are more than %d files", maxFiles)
		}
		if err != nil {
			return nil, "", sdk.ConfigErrorf("/files/"+strconv.Itoa(i), "%v", err)
		}
	}
	return files, b.String(), nil
}

// Stat describes a file of rules. It refuses one that is too long, or that others than its owner and group may change or replace.
func Stat(file string) (os.FileInfo, error) {
	info, err := os.Stat(file)
	if err != nil {
		return nil, err
	}
	everybody := func(info os.FileInfo) bool { // Windows has no such modes
		return runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0
	}
	if !info.Mode().IsRegular() || info.Size() > maxSource || everybody(info) {
		return nil, errors.New("is not a file of at most 4 MiB that only its owner and group may change")
	}
	dir, err := os.Stat(filepath.Dir(file))
	if err == nil && everybody(dir) && dir.Mode()&os.ModeSticky == 0 {
		err = errors.New("is in a directory that everybody may change: chmod o-w " + filepath.Dir(file))
	}
	return info, err
}

// Files returns the files that an entry of the configuration's files stands for: at least one.
func Files(pattern string) ([]string, error) {
	if rest, ok := strings.CutPrefix(pattern, "~/"); ok {
		home := os.Getenv("HOME")
		if home == "" {
			return nil, fmt.Errorf("%s needs the variable HOME: add env: {pass: [HOME]}", pattern)
		}
		pattern = filepath.Join(home, rest)
	}
	if !filepath.IsAbs(pattern) {
		return nil, fmt.Errorf("%s is neither an absolute path nor one below ~/", pattern)
	}
	found, err := filepath.Glob(pattern)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("there is no file %s that the plugin may read", pattern)
	}
	return found, err
}

// read reads the rules of files and sets, and those of the configuration. Errors are [*phases.ConfigError].
func (k *keeper) read(files []string) (*ruleset, error) {
	rules, problems := parse("policies", k.config.Policies)
	pointer := "/policies"
	for _, name := range k.config.Sets {
		source, _, _ := Set(name) // the schema has their names
		more, _ := parse(name+".cedar", source)
		rules = append(rules, more...)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, sdk.ConfigErrorf("/files", "%v", err)
		}
		more, found := parse(file, string(source))
		if rules = append(rules, more...); len(problems) == 0 && len(found) > 0 {
			pointer = "/files"
		}
		problems = append(problems, found...)
	}
	if len(problems) > 0 {
		return nil, sdk.ConfigErrorf(pointer, "%s", first(problems))
	}
	if len(rules) == 0 || len(rules) > maxRules {
		return nil, sdk.ConfigErrorf("", "there are %d rules: name files or sets, or write policies, with 1 to %d in all; see: grapnel rules list", len(rules), maxRules)
	}
	return newRuleset(rules), nil
}

// first is the first of problems.
func first(problems []Problem) string {
	if more := len(problems) - 1; more > 0 {
		return fmt.Sprintf("%s; and %d more: grapnel rules check", problems[0], more)
	}
	return problems[0].String()
}

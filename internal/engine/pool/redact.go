package pool

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
)

const (
	redacted  = "***"
	minSecret = 6 // the shortest text that is redacted: a shorter one would be found in innocent words
)

// redactor removes a plugin's secrets, which its declaration takes from the environment, from its log lines, errors
// and diagnostics. It protects from mistakes, not from a plugin that encodes a secret. A nil one has nothing to hide.
type redactor struct{ secrets *strings.Replacer }

func newRedactor(p *config.Plugin) *redactor {
	var forms []string
	for _, s := range p.Env.Set {
		if s.FromEnv != "" {
			forms = append(forms, formsOf(s.Value)...)
		}
	}
	var own any
	if places := p.Secrets(); len(places) > 0 && json.Unmarshal(p.Config, &own) == nil {
		for pointer := range places {
			if text, ok := valueAt(own, pointer).(string); ok {
				forms = append(forms, formsOf(text)...)
			}
		}
	}
	if len(forms) == 0 {
		return nil
	}
	// Of two that begin at one place the longer one is replaced.
	slices.SortFunc(forms, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	var pairs []string
	for _, form := range slices.Compact(forms) {
		pairs = append(pairs, form, redacted)
	}
	return &redactor{strings.NewReplacer(pairs...)}
}

// formsOf lists how a secret may look in a line of text: each of its lines, bare and quoted.
func formsOf(secret string) []string {
	var forms []string
	for line := range strings.Lines(secret) {
		if line = strings.TrimSpace(line); len(line) < minSecret {
			continue
		}
		forms = append(forms, line)
		quoted := strconv.Quote(line)
		forms = append(forms, quoted[1:len(quoted)-1])
		if data, err := json.Marshal(line); err == nil {
			forms = append(forms, string(data[1:len(data)-1]))
		}
	}
	return forms
}

func valueAt(v any, pointer string) any {
	for _, token := range strings.Split(pointer, "/")[1:] {
		switch at := v.(type) {
		case map[string]any:
			v = at[strings.NewReplacer("~1", "/", "~0", "~").Replace(token)]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(at) {
				return nil
			}
			v = at[i]
		default:
			return nil
		}
	}
	return v
}

func (r *redactor) text(s string) string {
	if r == nil {
		return s
	}
	return r.secrets.Replace(s)
}

// err returns an error that says the same without secrets: err itself if it holds none.
func (r *redactor) err(err error) error {
	if r == nil || err == nil || r.text(phases.Whole(err)) == phases.Whole(err) {
		return err
	}
	if coded, ok := errors.AsType[*phases.Error](err); ok {
		return r.coded(coded)
	}
	if refused, ok := errors.AsType[*phases.ConfigError](err); ok {
		return &phases.ConfigError{Pointer: refused.Pointer, Message: r.text(refused.Message), AtKey: refused.AtKey}
	}
	return phases.WithDetail(r.text(err.Error()), r.text(phases.DetailOf(err)), nil)
}

func (r *redactor) coded(err *phases.Error) *phases.Error {
	if r == nil || err == nil {
		return err
	}
	hidden := *err
	hidden.Message, hidden.Detail, hidden.Err = r.text(err.Message), r.text(err.Detail), r.err(err.Err)
	return &hidden
}

func (r *redactor) notes(list []phases.Diagnostic) {
	if r == nil {
		return
	}
	for i := range list {
		list[i].Message, list[i].Detail = r.text(list[i].Message), r.text(list[i].Detail)
	}
}

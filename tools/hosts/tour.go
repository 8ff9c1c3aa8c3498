package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// tour is docs/BACKTEST.md with a real agent: what it did without Grapnel is judged, a set of rules is added, and the same call is
// denied, recorded and proved.
func (t *trial) tour(ctx context.Context) error {
	args, env, err := t.agent.prepare(t, nil)
	if err := cmp.Or(err, t.converse(ctx, args, env)); err != nil {
		return err
	}
	errs := []error{t.reached(true), t.backtest(ctx, true)}
	_, added := t.grapnel(ctx, "rules", "add", "secrets")
	errs = append(errs, added, t.backtest(ctx, false))
	_, installed := t.grapnel(ctx, "install", t.agent.name)
	t.model.bodies = nil // the agent has ended
	if err := cmp.Or(errors.Join(errs...), installed, t.converse(ctx, args, env), t.reached(false)); err != nil {
		return err
	}
	var record struct {
		Calls []struct {
			ID        string   `json:"manifest_id"`
			Verdict   string   `json:"verdict"`
			Facts     []string `json:"facts"`
			DecidedBy []struct {
				Subscription string `json:"subscription"`
			} `json:"decided_by"`
		} `json:"calls"`
	}
	if err := t.asked(ctx, &record, "manifest", "calls"); err != nil {
		return err
	}
	denied := ""
	for _, c := range record.Calls {
		if c.Verdict == "deny" && len(c.DecidedBy) == 1 && c.DecidedBy[0].Subscription == "rules.call" && len(c.Facts) > 0 {
			denied = c.ID
		}
	}
	if denied == "" {
		return fmt.Errorf("no call was denied by rules.call, with its facts: %+v", record)
	}
	for _, command := range []string{"manifest key example.com/log --out log.key", "manifest checkpoint --key-file log.key", "manifest prove " + denied} {
		if _, err := t.grapnel(ctx, strings.Fields(command)...); err != nil {
			return err
		}
	}
	return nil
}

// reached compares whether the secret has reached the model.
func (t *trial) reached(want bool) error {
	if reached := strings.Contains(strings.Join(t.model.bodies, "\n"), secret); reached != want {
		return fmt.Errorf("the secret reached the model: %t instead of %t", reached, want)
	}
	return nil
}

// backtest expects that the agent's call would have been denied.
func (t *trial) backtest(ctx context.Context, offered bool) error {
	var report struct {
		Summary string         `json:"summary"`
		Offered []string       `json:"offered"`
		Calls   map[string]int `json:"calls"`
	}
	err := t.asked(ctx, &report, "backtest")
	if err == nil && (report.Calls["deny"] != 1 || len(report.Offered) > 0 != offered) {
		err = fmt.Errorf("the backtest says: %+v", report)
	}
	return err
}

// asked runs a command of grapnel, and reads what it prints.
func (t *trial) asked(ctx context.Context, answer any, args ...string) error {
	out, err := t.grapnel(ctx, append(args, "--json")...)
	return cmp.Or(err, json.Unmarshal(out, answer))
}

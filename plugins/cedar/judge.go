package cedar

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cedar-policy/cedar-go/types"
	"github.com/cedar-policy/cedar-go/x/exp/ast"
	"github.com/cedar-policy/cedar-go/x/exp/eval"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// The codes of decisions by a rule that has none, and about what could not be judged.
const (
	codeRule   = "cedar_rule"
	codeFailed = "rule_failed"
)

const (
	maxRequests = 2000 // what one call may do, to be judged
	maxShown    = 3    // rules in a reason
	maxObject   = 160  // characters of what a rule was broken by
)

// finding is a rule that speaks against a request. A nil rule says that none permits it.
type finding struct {
	rule    *rule
	request string
	fails   error // the rule could not be evaluated
}

// judge evaluates the rules on all that a scene does. It returns nil if nothing speaks against it. With denies, each
// request needs a rule that permits it.
func (s *ruleset) judge(ctx context.Context, sc *scene, denies bool) (*phases.Decision, error) {
	var found []finding
	count := 0
	for i := range actions {
		a := &actions[i]
		if a.phase != sc.phase {
			continue
		}
		for _, id := range a.on(sc) {
			if err := context.Cause(ctx); err != nil {
				return nil, err
			}
			if count++; count > maxRequests {
				return undecidable(fmt.Sprintf("it does more than %d things", maxRequests)), nil
			}
			found = append(found, s.evaluate(sc, a, id, denies)...)
		}
	}
	return decide(found), nil
}

// evaluate evaluates the rules on one request: an action on a resource. It does not call cedar.Authorize, by which Cedar's
// JSON code would be linked: 240 KB.
func (s *ruleset) evaluate(sc *scene, a *action, id string, denies bool) []finding {
	env := eval.Env{Entities: sc, Principal: sc.agent, Action: actionUID(a.name), Resource: uid(a.resource, id), Context: sc.context}
	var found []finding
	permitted := !denies
	for _, r := range s.about[a.name] {
		value, err := eval.Eval(r.condition, env)
		switch {
		case err != nil:
			found = append(found, finding{r, sc.describe(a, id), err})
		case value != types.True:
		case r.policy.Effect == ast.EffectForbid:
			found = append(found, finding{rule: r, request: sc.describe(a, id)})
		default:
			permitted = true
		}
	}
	if !permitted {
		found = append(found, finding{request: sc.describe(a, id)})
	}
	return found
}

func (f finding) asks() bool { return f.rule != nil && f.rule.asks && f.fails == nil }

// reason is the text of a decision, and its code.
func (f finding) reason() (text, code string) {
	switch {
	case f.rule == nil:
		return "no rule permits it: " + f.request, codeRule
	case f.fails != nil:
		return fmt.Sprintf("%s could not be evaluated on what %s: %s", f.rule.place(), f.request, sdk.OneLine(f.fails.Error())), codeFailed
	case f.rule.reason != "":
		return fmt.Sprintf("%s (%s: %s)", f.rule.reason, f.rule.place(), f.request), cmp.Or(f.rule.code, codeRule)
	}
	return f.rule.place() + ": " + f.request, cmp.Or(f.rule.code, codeRule)
}

// decide makes one decision of all findings: deny before ask. Its reason has a line for each of the first rules.
func decide(found []finding) *phases.Decision {
	if len(found) == 0 {
		return nil
	}
	d := &phases.Decision{Verdict: phases.VerdictAsk}
	if slices.ContainsFunc(found, func(f finding) bool { return !f.asks() }) {
		d.Verdict = phases.VerdictDeny
		found = slices.DeleteFunc(found, finding.asks)
	}
	var lines []string
	said := map[*rule]bool{}
	for _, f := range found {
		if said[f.rule] {
			continue
		}
		if said[f.rule] = true; len(said) <= maxShown {
			line, code := f.reason()
			lines, d.ReasonCode, d.ContributionID = append(lines, line), cmp.Or(d.ReasonCode, code), cmp.Or(d.ContributionID, f.rule.key())
		}
	}
	if more := len(said) - maxShown; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more rules", more))
	}
	d.Reason = strings.Join(lines, "\n")
	return d
}

// undecidable denies what cannot be judged.
func undecidable(why string) *phases.Decision {
	return &phases.Decision{Verdict: phases.VerdictDeny, Reason: "this cannot be judged by rules: " + why, ReasonCode: codeFailed}
}

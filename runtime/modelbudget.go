package runtime

import (
	"cmp"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/phases"
)

// answerTokens is what a call may use that does not say how much it needs: less
// than the whole budget, so that a second call at the same time finds some.
const answerTokens = 1024

// modelAccount is what one plugin has left of its model budget in one turn. It is
// not safe for concurrent use; the scope locks it.
//
// Tokens are taken off before a call and the difference is given back after it, so
// that calls at the same time cannot use the same ones. What the provider reports
// may be more than was allowed: the account is then overdrawn and takes no more
// calls.
type modelAccount struct{ calls, tokens int }

// newModelAccount has the operator's budget, or the defaults.
func newModelAccount(b config.ModelBudget) *modelAccount {
	return &modelAccount{cmp.Or(b.Calls, config.DefaultModelCalls), cmp.Or(b.OutputTokens, config.DefaultModelOutputTokens)}
}

// reserve takes a call off, with the output tokens that it may use: the wanted
// ones as far as they are there. 0 wanted tokens leave the number to the account.
func (a *modelAccount) reserve(wanted int) (tokens int, refused *phases.Error) {
	switch {
	case a.calls <= 0:
		return 0, exhausted("all calls of the model are used up (limits.model.calls)")
	case a.tokens <= 0:
		return 0, exhausted("all output tokens of the model are used up (limits.model.output_tokens)")
	}
	if wanted <= 0 {
		wanted = answerTokens
	}
	tokens = min(wanted, a.tokens)
	a.calls--
	a.tokens -= tokens
	return tokens, nil
}

// settle gives back what a call did not use of its reserved tokens, or takes off
// what it used beyond them.
func (a *modelAccount) settle(reserved, used int) { a.tokens += reserved - used }

// reserveModel takes one call off a plugin's account.
func (s *scope) reserveModel(plugin string, b config.ModelBudget, wanted int) (int, *phases.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.models[plugin]
	if !ok {
		a = newModelAccount(b)
		if s.models == nil {
			s.models = map[string]*modelAccount{}
		}
		s.models[plugin] = a
	}
	return a.reserve(wanted)
}

// settleModel ends what reserveModel began.
func (s *scope) settleModel(plugin string, reserved, used int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.models[plugin].settle(reserved, used)
}

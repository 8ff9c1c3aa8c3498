package plugintest

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/phases"
)

// checkCancelled makes the call with a context that has ended: it must return.
// If it does not, it is left behind, and nothing more can be tried.
func (r *run) checkCancelled() bool {
	ctx, cancel := context.WithCancel(r.Context())
	cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.ask(ctx, inProcess{r.plugin})
	}()
	patience := time.NewTimer(r.c.Patience)
	defer patience.Stop()
	select {
	case <-done:
		return true
	case <-patience.C:
		r.Errorf("the call does not return when its context ends: after %v it still runs", r.c.Patience)
		return false
	}
}

// twice makes the call two times and compares the answers.
func (r *run) twice(where string, to caller) Answer {
	first, second := r.ask(r.Context(), to), r.ask(r.Context(), to)
	for i := range min(len(first.Contributions), len(second.Contributions)) {
		if first.Contributions[i] != nil && first.Contributions[i] == second.Contributions[i] {
			r.Errorf("%s: contribution %d of two answers is one value; what a handler returns belongs to the host, so return a new one each time", where, i)
		}
	}
	if a, b := r.encode(first), r.encode(second); r.c.Volatile == "" && !isPanic(first) && !bytes.Equal(a, b) {
		r.Errorf("%s: the same call gives two answers\nfirst:  %s\nsecond: %s", where, a, b)
	}
	return first
}

// checkAnswer checks an answer by itself.
func (r *run) checkAnswer(a Answer) {
	switch {
	case isPanic(a):
		r.Errorf("the handler panics: %s", a.Error.Message)
	case r.c.anyCode:
	case a.Error != nil && a.Error.Code != r.c.WantCode:
		r.Errorf("the plugin fails with the code %q (%s), want %q", a.Error.Code, a.Error.Message, r.c.WantCode)
	case a.Error == nil && r.c.WantCode != "":
		r.Errorf("the plugin succeeds, want the error %q", r.c.WantCode)
	}
	if len(a.Content) > 0 {
		if err := phases.CheckJSON(a.Content, phases.MaxJSONDepth); err != nil {
			r.Errorf("the tool's content %v", err)
		}
	}
	if n := len(a.Contributions); n > phases.MaxContributions {
		r.Errorf("%d contributions; a host takes %d", n, phases.MaxContributions)
	}
	for i, c := range a.Contributions {
		if c == nil {
			r.Errorf("contribution %d is nil", i)
			continue
		}
		if k := c.Kind(); k.NeedsGrant() && !slices.Contains(r.hook.Kinds, k) {
			r.Errorf("contribution %d is of the kind %s, which the hook %s does not declare in Kinds", i, k, r.hook.Name)
		}
		if err := phases.ValidateContribution(c, r.row); err != nil {
			r.Errorf("contribution %d is not well formed: %s", i, phases.Whole(err))
		}
	}
}

func isPanic(a Answer) bool { return a.Error != nil && a.Error.Code == codePanic }

// encode is an answer as it is compared. The stack of a panic is never the same.
func (r *run) encode(a Answer) []byte {
	if isPanic(a) {
		a.Error = &Failure{Code: codePanic}
	}
	data, err := encode(a)
	if err != nil {
		r.Errorf("the answer cannot be written as JSON: %v", err)
	}
	return data
}

// encode writes JSON on lines, with text as it is.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return out.Bytes(), err
}

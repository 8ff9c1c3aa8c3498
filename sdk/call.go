package sdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/grapnelhq/grapnel/phases"
)

// Call is what a handler is given besides its input: the dispatch (context,
// budgets, the sets it may see, trace) and the host.
type Call struct {
	*phases.Dispatch
	// Host answers host services. It is nil before the first Configure.
	Host phases.Host
}

// Policy returns the value of one policy, if it is set and may be seen.
func (c *Call) Policy(domain, key string) (json.RawMessage, bool) {
	return policyOf(c.Policies, domain, key)
}

// ToolCall is what a tool is given: the call (arguments, context, the policies
// that it may see, whether a turn made it) and the host.
type ToolCall struct {
	*phases.ToolCall
	// Host answers host services.
	Host phases.Host
}

// Policy returns the value of one policy of the turn, if it is set and may be
// seen. Outside a turn (OutsideTurn) there is none.
func (c *ToolCall) Policy(domain, key string) (json.RawMessage, bool) {
	return policyOf(c.Policies, domain, key)
}

func policyOf(list []phases.PolicyEntry, domain, key string) (json.RawMessage, bool) {
	for i := range list {
		if list[i].Domain == domain && list[i].Key == key {
			return list[i].Value, true
		}
	}
	return nil, false
}

// Reply returns its arguments as an answer, for the common return statement.
func Reply(cs ...phases.Contribution) ([]phases.Contribution, error) { return cs, nil }

// Text returns a tool's answer that is plain text.
func Text(s string) *phases.ToolResult {
	content, err := json.Marshal(s)
	if err != nil {
		content = []byte(`""`) // a string always encodes
	}
	return &phases.ToolResult{Content: content}
}

// Fail returns an error with a code of the plugin's own, such as
// "upstream_down". The operator's failure policy decides what becomes of it.
func Fail(code, message string) *phases.Error {
	return &phases.Error{Code: phases.CausePluginError, PluginCode: code, Message: message}
}

// asFailure makes every error of a handler a coded one.
func asFailure(err error) error {
	if coded, ok := errors.AsType[*phases.Error](err); ok {
		return coded
	}
	failure := Fail("error", err.Error())
	failure.Err = err
	return failure
}

// recovered turns a handler's panic into a coded error with the stack.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = Fail(phases.PluginCodePanic, fmt.Sprintf("panic: %v\n%s", r, debug.Stack()))
	}
}

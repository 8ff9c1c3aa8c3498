package plan

import (
	"cmp"
	"slices"
	"strings"
)

// Problem is one mistake in the combined plan.
type Problem struct {
	// Plugin is the declared plugin in whose configuration it lies; "" for the
	// phases' budgets.
	Plugin string
	// Subscription is the id that it is about, if any.
	Subscription string
	// Field is the path of the setting: below the plugin's entry, such as
	// "subscriptions.agentsdoc.prompt.timeout", or from the top of the file,
	// such as "budgets.phases.turn.pre_policy.require". Where the plugin itself
	// proposed the value, the path is where the operator could override it.
	Field string
	// Operator says that the mistake is the operator's: the file has the field.
	Operator bool
	// Message says what is wrong, with the subscription's id and the nearest
	// known name. A condition's message has lines with a caret.
	Message string
}

// Error gives the place and the message.
func (p Problem) Error() string {
	where := p.Field
	if p.Plugin != "" {
		where = "plugins." + p.Plugin + "." + p.Field
	}
	return where + ": " + p.Message
}

// Problems is all mistakes of a plan; the error of [Build].
type Problems struct {
	// List is sorted and not empty.
	List []Problem
}

// Error gives one problem a paragraph.
func (p *Problems) Error() string {
	lines := make([]string, len(p.List))
	for i, one := range p.List {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the problems one by one.
func (p *Problems) Unwrap() []error {
	errs := make([]error, len(p.List))
	for i, one := range p.List {
		errs[i] = one
	}
	return errs
}

// sorted returns the problems in an order that does not depend on that of the
// plugins; nil when there are none.
func sorted(list []Problem) *Problems {
	if len(list) == 0 {
		return nil
	}
	slices.SortStableFunc(list, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Plugin, b.Plugin), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
	})
	return &Problems{List: slices.Compact(list)}
}

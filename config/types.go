package config

import (
	"reflect"

	"github.com/grapnelhq/grapnel/phases"
)

// wordsOf returns the words of an enumeration of package phases, nil for other
// types.
func wordsOf(t reflect.Type) []string {
	switch t {
	case reflect.TypeFor[phases.Kind]():
		return texts(phases.Kinds()...)
	case reflect.TypeFor[phases.Role]():
		return texts(phases.Roles()...)
	case reflect.TypeFor[phases.FailureWord]():
		return texts(phases.FailClosed, phases.BestEffort, phases.UseInstead)
	case reflect.TypeFor[phases.Visibility]():
		return texts(phases.VisibilityInternal, phases.VisibilityDebug, phases.VisibilityUserAudit, phases.VisibilityUserVisible)
	case reflect.TypeFor[phases.WithoutNeeds]():
		return texts(phases.TurnOff)
	case reflect.TypeFor[phases.Stability]():
		return texts(phases.StabilityStable, phases.StabilityDynamic)
	case reflect.TypeFor[phases.Placement]():
		return texts(phases.PlacementSystem, phases.PlacementSystemMessage, phases.PlacementUserMessage)
	case reflect.TypeFor[phases.Verdict]():
		return texts(phases.VerdictAllow, phases.VerdictAsk, phases.VerdictDeny)
	case reflect.TypeFor[phases.Severity]():
		return texts(phases.SeverityInfo, phases.SeverityWarning, phases.SeverityError)
	case reflect.TypeFor[Right]():
		return texts(RightRead, RightWrite, RightCompile, RightDispatch, RightAdmin)
	}
	return nil
}

// texts turns typed words into strings.
func texts[T ~string](words ...T) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = string(w)
	}
	return out
}

// newContribution returns a zero contribution of a kind, nil for no kind.
func newContribution(kind phases.Kind) phases.Contribution {
	switch kind {
	case phases.KindPolicy:
		return &phases.Policy{}
	case phases.KindPromptContext:
		return &phases.PromptContext{}
	case phases.KindPromptSection:
		return &phases.PromptSection{}
	case phases.KindToolBundle:
		return &phases.ToolBundle{}
	case phases.KindDecision:
		return &phases.Decision{}
	case phases.KindRewrite:
		return &phases.Rewrite{}
	case phases.KindReminder:
		return &phases.Reminder{}
	case phases.KindManifestDiagnostic:
		return &phases.ManifestDiagnostic{}
	case phases.KindAudit:
		return &phases.Audit{}
	case phases.KindBackgroundJob:
		return &phases.BackgroundJob{}
	case phases.KindNoop:
		return &phases.Noop{}
	}
	return nil // a test makes one of every kind in phases.Kinds
}

// field is one key of a struct.
type field struct {
	key string
	// owner is the Go type that declares it, which for an embedded struct is not
	// the one asked for; the table of rules goes by it.
	owner string
	index []int
	typ   reflect.Type
}

// fieldsOf lists the keys of a struct in the order of its declaration, those of
// embedded structs included.
func fieldsOf(t reflect.Type) []field {
	var out []field
	for _, f := range reflect.VisibleFields(t) {
		key := jsonName(f)
		if f.Anonymous || key == "" {
			continue
		}
		owner := t
		if len(f.Index) > 1 {
			owner = t.FieldByIndex(f.Index[:len(f.Index)-1]).Type
		}
		out = append(out, field{key, owner.Name(), f.Index, f.Type})
	}
	return out
}

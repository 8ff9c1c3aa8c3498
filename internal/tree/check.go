package tree

import (
	"reflect"
	"strings"
)

// Check refuses parameters of a [Store]'s methods that are invalid in any tree. It goes by the
// JSON names of their fields; those that JSON may omit may be empty. [Normalize] checks the
// content, and the store the cursor: one that it did not make is CodeInvalid.
func Check(params any) error {
	v := reflect.ValueOf(params)
	for _, f := range reflect.VisibleFields(v.Type()) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if err := checkField(name, options != "", v.FieldByIndex(f.Index)); err != nil {
			return err
		}
	}
	if save, ok := params.(Save); ok && save.SaveReason == Autosave && save.ExpectedVersion == nil {
		return Errorf(CodeInvalid, "expected_version: an autosave says which version it is based on (0 for none)")
	}
	return nil
}

func checkField(name string, optional bool, v reflect.Value) error {
	if optional && v.IsZero() {
		return nil
	}
	switch {
	case strings.HasSuffix(name, "id"):
		return CheckID(name, v.String())
	case name == "name", name == "title", name == "actor":
		return CheckName(name, v.String())
	case name == "save_reason" && v.String() != string(Autosave) && v.String() != string(Manual):
		return Errorf(CodeInvalid, "%s: %q is not %s or %s", name, v.String(), Autosave, Manual)
	case name == "threads" && v.String() != string(AllThreads) && v.String() != string(NoThreads):
		return Errorf(CodeInvalid, "%s: %q is not %s or %s", name, v.String(), AllThreads, NoThreads)
	case name == "limit" && (v.Int() < 0 || v.Int() > MaxLimit):
		return Errorf(CodeInvalid, "limit: %d is not between 0 and %d", v.Int(), MaxLimit)
	case v.CanInt() && optional && v.Int() < 0:
		return Errorf(CodeInvalid, "%s: %d is less than 0", name, v.Int())
	case v.CanInt() && !optional && v.Int() < 1:
		return Errorf(CodeInvalid, "%s: %d is less than 1", name, v.Int())
	}
	return nil
}

// CheckActor is [CheckName] for an actor, which may be empty.
func CheckActor(actor string) error {
	if actor == "" {
		return nil
	}
	return CheckName("actor", actor)
}

package sdk_test

import (
	"reflect"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// TestEveryPhaseHasAHandler sets each typed handler field, one after the other,
// by reflection: the fields together are the standard table, and each is called
// with its own input and with no other.
func TestEveryPhaseHasAHandler(t *testing.T) {
	t.Parallel()
	served := map[phases.Phase]bool{}
	for f := range reflect.TypeFor[sdk.Hook]().Fields() {
		if f.Type.Kind() != reflect.Func || f.Name == "Any" {
			continue
		}
		calls := 0
		h := sdk.Hook{Name: "h"}
		reflect.ValueOf(&h).Elem().FieldByName(f.Name).Set(reflect.MakeFunc(f.Type, func([]reflect.Value) []reflect.Value {
			calls++
			return []reflect.Value{reflect.ValueOf([]phases.Contribution{&phases.Noop{}}), reflect.Zero(reflect.TypeFor[error]())}
		}))
		p := plugin(h)
		d, err := p.Describe(t.Context())
		if err != nil {
			t.Errorf("%s: %v", f.Name, err)
			continue
		}
		phase := d.Hooks[0].Phase
		served[phase] = true
		for _, row := range phases.Standard().Rows() {
			_, err := p.Dispatch(t.Context(), &phases.Dispatch{Hook: "h", Phase: row.Phase, Input: row.NewInput()})
			if ok := row.Phase == phase; ok != (err == nil) {
				t.Errorf("%s with the input of %s: %v", f.Name, row.Phase, err)
			}
		}
		if calls != 1 {
			t.Errorf("%s was called %d times", f.Name, calls)
		}
	}
	for _, name := range phases.Standard().Names() {
		if !served[phases.Phase(name)] {
			t.Errorf("no handler field serves %s", name)
		}
	}
}

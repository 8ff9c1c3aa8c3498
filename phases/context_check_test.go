package phases

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

// TestContextBounds: every text of a context has a limit, and the error names the field.
// Reflection finds the fields, so that a new one cannot be forgotten.
func TestContextBounds(t *testing.T) {
	t.Parallel()

	var c Context
	n := eachText(reflect.ValueOf(&c).Elem(), "", func(field string, text reflect.Value) {
		most := MaxIDBytes
		if field == "dir" || field == "dir_root" {
			most = maxPathBytes
		}
		text.SetString(strings.Repeat("x", most))
		if err := CheckContext(&c); err != nil {
			t.Errorf("%s with %d bytes: %v", field, most, err)
		}
		text.SetString(strings.Repeat("x", most+1))
		if err := CheckContext(&c); err == nil || err.Code != CauseOversizeRequest ||
			!strings.HasPrefix(err.Message, field+": ") || !strings.HasSuffix(err.Message, " "+strconv.Itoa(most)) {
			t.Errorf("%s with %d bytes: %v", field, most+1, err)
		}
		text.SetString("")
	})
	if n != 14 {
		t.Errorf("%d texts", n)
	}
}

// eachText calls do with the texts of a struct, and counts them.
func eachText(v reflect.Value, prefix string, do func(field string, text reflect.Value)) int {
	n := 0
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		switch f := v.Field(i); {
		case f.Kind() == reflect.String:
			do(prefix+name, f)
			n++
		case f.Type() == reflect.TypeFor[Actor]():
			n += eachText(f, prefix+name+".", do)
		}
	}
	return n
}

// TestContextOfManyEntries: what a small entry takes in memory counts, not its text.
func TestContextOfManyEntries(t *testing.T) {
	t.Parallel()

	c := Context{Flags: map[string]bool{"f": true}, Metadata: map[string]json.RawMessage{"m": json.RawMessage(strings.Repeat("1", maxContextBytes-2*contextEntryBytes-2))}}
	if err := CheckContext(&c); err != nil {
		t.Error(err)
	}
	c.Flags["ff"] = true
	if err := CheckContext(&c); err == nil || err.Code != CauseOversizeRequest || !strings.HasPrefix(err.Message, "metadata: ") {
		t.Error(err)
	}
	many := Context{Flags: map[string]bool{}}
	for i := range 1024 {
		many.Flags[strconv.Itoa(i)] = true
	}
	if err := CheckContext(&many); err == nil {
		t.Error("1,024 flags pass")
	}
}

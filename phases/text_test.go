package phases_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

func TestNewPreview(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		in    string
		limit int
		want  phases.Preview
	}{
		{"empty", "", 5, phases.Preview{}},
		{"cut", "añb", 2, phases.Preview{Text: "añ", OriginalLength: 3, Truncated: true}},
		{"nothing", "añb", 0, phases.Preview{OriginalLength: 3, Truncated: true}},
		{"not UTF-8", "\xff\xfeb", 2, phases.Preview{Text: "\xff\xfe", OriginalLength: 3, Truncated: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(phases.NewPreview(tt.in, tt.limit), tt.want); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
		})
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	tests := []struct {
		in   string
		want time.Duration
		ok   bool
	}{
		{`"250ms"`, 250 * time.Millisecond, true},
		{`"1h2m"`, 62 * time.Minute, true},
		{`"0"`, 0, true},
		{`"-1s"`, -time.Second, true},
		{`250`, 0, false},
		{`0`, 0, false},
		{`"250"`, 0, false},
		{`""`, 0, false},
		{`"ms"`, 0, false},
		{`null`, 0, false},
		{`"1 s"`, 0, false},
	}
	for _, tt := range tests {
		var got phases.Duration
		err := json.Unmarshal([]byte(tt.in), &got)
		if (err == nil) != tt.ok || got.D() != tt.want {
			t.Errorf("%s is %v, error %v", tt.in, got, err)
		}
		if err != nil && !strings.Contains(err.Error(), "with a unit, such as") {
			t.Errorf("%s: the error does not say what to write: %v", tt.in, err)
		}
		if tt.ok {
			var again phases.Duration
			if err := json.Unmarshal([]byte(encode(t, got)), &again); err != nil || again != got || got.String() != tt.want.String() {
				t.Errorf("%s is read back as %v, error %v", encode(t, got), again, err)
			}
		}
	}
}

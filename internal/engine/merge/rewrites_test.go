package merge_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

func TestRewrites(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, a, b string // of a.h, then b.h, at equal priority unless +1 is at the end: "path=value"
		want       string // "path=value of owner"
		conflict   string
	}{
		{"two paths", "/x=1", "/y=2", "/x=1 of a.h, /y=2 of b.h", ""},
		{"one path", "/x=1", "/x=2 /y=3", "/x=1 of a.h, /y=3 of b.h", "b.h -> a.h: /x"},
		{"one path, other priorities", "/x=1", "/x=2+1", "/x=1 of a.h, /x=2 of b.h", ""},
		{"below another's", "/x={}", "/x/y/z=2", "/x={} of a.h", "b.h -> a.h: /x/y/z"},
		{"above another's", "/x/y/z=1", "/x=2", "/x/y/z=1 of a.h", "b.h -> a.h: /x"},
		{"the whole against a part", "/x=1", "=2", "/x=1 of a.h", "b.h -> a.h: "},
		{"below one's own", "/x={} /x/y=1", "/xy=2", "/x={} of a.h, /x/y=1 of a.h, /xy=2 of b.h", ""},
		{"above one's own and another's", "/x/a=1", "/x/b=2 /x=3", "/x/a=1 of a.h, /x/b=2 of b.h", "b.h -> a.h: /x"},
		{"both append", "/x/-=1 /x/-=2", "/x/-=3", "/x/-=1 of a.h, /x/-=2 of a.h, /x/-=3 of b.h", ""},
		{"twice by one", "/x=1 /x=2", "", "/x=1 of a.h", "a.h -> a.h: /x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			got := merged(from(t, hook("a.h"), writing(tt.a)...), from(t, hook("b.h"), writing(tt.b)...))
			var list []string
			for _, r := range got.Merged.Rewrites {
				list = append(list, r.Path+"="+string(r.Value)+" of "+r.Owner)
			}
			checkSame(t, "rewrites", strings.Join(list, ", "), tt.want)
			checkSame(t, "conflicts", strings.Join(lost(got), ", "), tt.conflict)
		})
	}
}

// writing reads rewrites.
func writing(text string) []phases.Contribution {
	var list []phases.Contribution
	for _, one := range strings.Fields(text) {
		one, raised := strings.CutSuffix(one, "+1")
		path, value, _ := strings.Cut(one, "=")
		r := &phases.Rewrite{Path: path, Value: json.RawMessage(value)}
		if raised {
			r.Priority = 1
		}
		list = append(list, r)
	}
	return list
}

package merge_test

import (
	"encoding/json"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
)

func rewrite(path, value string) *phases.Rewrite {
	return &phases.Rewrite{Path: path, Value: json.RawMessage(value)}
}

func TestRewrites(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name      string
		a, b      []phases.Contribution // of a.h, then b.h, at equal priority
		want      []string              // "path=value of owner"
		conflicts []string
	}{
		{
			"two paths",
			[]phases.Contribution{rewrite("/x", "1")},
			[]phases.Contribution{rewrite("/y", "2")},
			[]string{"/x=1 of a.h", "/y=2 of b.h"},
			nil,
		},
		{
			"one path",
			[]phases.Contribution{rewrite("/x", "1")},
			[]phases.Contribution{rewrite("/x", "2"), rewrite("/y", "3")},
			[]string{"/x=1 of a.h", "/y=3 of b.h"},
			[]string{"b.h -> a.h: /x"},
		},
		{
			"one path, other priorities",
			[]phases.Contribution{rewrite("/x", "1")},
			[]phases.Contribution{prio(rewrite("/x", "2"), 1)},
			[]string{"/x=1 of a.h", "/x=2 of b.h"},
			nil,
		},
		{
			"below another's",
			[]phases.Contribution{rewrite("/x", "{}")},
			[]phases.Contribution{rewrite("/x/y/z", "2")},
			[]string{"/x={} of a.h"},
			[]string{"b.h -> a.h: /x/y/z"},
		},
		{
			"above another's",
			[]phases.Contribution{rewrite("/x/y/z", "1")},
			[]phases.Contribution{rewrite("/x", "2")},
			[]string{"/x/y/z=1 of a.h"},
			[]string{"b.h -> a.h: /x"},
		},
		{
			"the whole against a part",
			[]phases.Contribution{rewrite("/x", "1")},
			[]phases.Contribution{rewrite("", "2")},
			[]string{"/x=1 of a.h"},
			[]string{"b.h -> a.h: "},
		},
		{
			"below one's own",
			[]phases.Contribution{rewrite("/x", "{}"), rewrite("/x/y", "1")},
			[]phases.Contribution{rewrite("/xy", "2")},
			[]string{"/x={} of a.h", "/x/y=1 of a.h", "/xy=2 of b.h"},
			nil,
		},
		{
			"above one's own and another's",
			[]phases.Contribution{rewrite("/x/a", "1")},
			[]phases.Contribution{rewrite("/x/b", "2"), rewrite("/x", "3")},
			[]string{"/x/a=1 of a.h", "/x/b=2 of b.h"},
			[]string{"b.h -> a.h: /x"},
		},
		{
			"both append",
			[]phases.Contribution{rewrite("/x/-", "1"), rewrite("/x/-", "2")},
			[]phases.Contribution{rewrite("/x/-", "3")},
			[]string{"/x/-=1 of a.h", "/x/-=2 of a.h", "/x/-=3 of b.h"},
			nil,
		},
		{
			"twice by one",
			[]phases.Contribution{rewrite("/x", "1"), rewrite("/x", "2")},
			nil,
			[]string{"/x=1 of a.h"},
			[]string{"a.h -> a.h: /x"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			got := merged(from(t, hook("a.h"), tt.a...), from(t, hook("b.h"), tt.b...))
			var list []string
			for _, r := range got.Merged.Rewrites {
				list = append(list, r.Path+"="+string(r.Value)+" of "+r.Owner)
			}
			checkSame(t, "rewrites", list, tt.want)
			checkSame(t, "conflicts", lost(got), tt.conflicts)
		})
	}
}

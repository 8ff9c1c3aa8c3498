package turnpolicy

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestWindows(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", lookHead+lookTail)
	tests := []struct {
		name, text string
		want       []window
	}{
		{"empty", "", []window{{}}},
		{"short", "a\nb", []window{{text: "a\nb"}}},
		{"as long as both", long, []window{{text: long}}},
		{"one more", long + "y", []window{{text: long[:lookHead]}, {text: long[:lookTail-1] + "y", torn: true}}},
		{
			"characters, not bytes", strings.Repeat("é", lookHead) + "mid" + strings.Repeat("語", lookTail),
			[]window{{text: strings.Repeat("é", lookHead)}, {text: strings.Repeat("語", lookTail), torn: true}},
		},
		{
			"whole lines", strings.Repeat("x", lookHead) + "mid\n" + strings.Repeat("y", lookTail),
			[]window{{text: strings.Repeat("x", lookHead)}, {text: strings.Repeat("y", lookTail)}},
		},
		{
			"code goes on", "```go\n" + long + strings.Repeat("y", lookTail),
			[]window{{text: "```go\n" + strings.Repeat("x", lookHead-6)}, {text: strings.Repeat("y", lookTail), fence: "```", torn: true}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(windows(tt.text), tt.want, cmp.AllowUnexported(window{})); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

// FuzzWindows: what is looked at has a bound, whole characters, and is the beginning
// and the end.
func FuzzWindows(f *testing.F) {
	f.Add("", 0)
	f.Add("a語\xff```\n", 3000)
	f.Fuzz(func(t *testing.T, part string, times int) {
		text := strings.Repeat(part, max(0, times%5000))
		all := windows(text)
		var sum int
		for _, w := range all {
			sum += utf8.RuneCountInString(w.text)
		}
		if sum > lookHead+lookTail || sum < min(utf8.RuneCountInString(text), lookHead+lookTail) {
			t.Fatalf("%d characters are looked at", sum)
		}
		if !strings.HasPrefix(text, all[0].text) || !strings.HasSuffix(text, all[len(all)-1].text) {
			t.Fatal("the windows are not the ends")
		}
	})
}

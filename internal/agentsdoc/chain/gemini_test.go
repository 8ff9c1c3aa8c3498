package chain

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lazyCode is the regular expression (`+)([\s\S]*?)\1, tried at each place.
func lazyCode(text string) (regions [][2]int) {
	for i := 0; i < len(text); i++ {
		marks := len(text[i:]) - len(strings.TrimLeft(text[i:], "`"))
		for n := marks; n > 0; n-- {
			if end := strings.Index(text[i+n:], text[i:i+n]); end >= 0 {
				regions = append(regions, [2]int{i, i + n + end + n})
				i += n + end + n - 1
				break
			}
		}
	}
	return regions
}

func FuzzCodeRegions(f *testing.F) {
	f.Add("`` ` ``` x ` `````")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 200 {
			return
		}
		if diff := cmp.Diff(codeRegions(text), lazyCode(text)); diff != "" {
			t.Errorf("%q: (-got +want)\n%s", text, diff)
		}
	})
}

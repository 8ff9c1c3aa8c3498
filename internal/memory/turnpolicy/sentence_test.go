package turnpolicy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSentences(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       []string
	}{
		{"none", " \n. ", nil},
		{"stops", "one. two! three? four", []string{"one.", "two!", "three?", "four"}},
		{"several signs", "what?! well... yes", []string{"what?!", "well...", "yes"}},
		{"lines", "one\ntwo", []string{"one", "two"}},
		{"lists", "- one\n* two\n3. four", []string{"one", "two", "3.", "four"}},
		{"numbers and names", "v1.26 of file.go is out", []string{"v1.26 of file.go is out"}},
		{"abbreviations", "use e.g. tabs, dr. who", []string{"use e.g. tabs, dr. who"}},
		{"initials", "call j. r. smith", []string{"call j. r. smith"}},
		{"opening signs", "¿puedes? ¡si!", []string{"puedes?", "si!"}},
		{"scripts without spaces", "記住!我。他?是", []string{"記住!", "我。", "他?", "是"}},
		{"half sentences", "one; two", []string{"one; two"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, s := range sentences(tt.text) {
				got = append(got, s.in(tt.text))
			}
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

package turnpolicy

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// intentsOf is what a text wishes, surely enough.
func intentsOf(r *Rules, text string) []Intent {
	var all []Intent
	for _, w := range r.Wishes(text) {
		all = append(all, w.Intent)
	}
	return all
}

// TestClassifyWhole: what the parts of the classifier do together.
func TestClassifyWhole(t *testing.T) {
	t.Parallel()
	rules := builtin(t)
	prose := strings.Repeat("The parser reads a token and looks at the next one. ", 40)
	huge := strings.Repeat(prose+"\n", 500)
	remember := []Intent{IntentRemember}
	tests := []struct {
		name, text string
		want       []Intent
	}{
		{"empty", "", nil},
		{"typographic", "Don’t save this conversation…", []Intent{IntentNoSave}},
		{"invisible letters", "Re\u200bmember that I use fish.", remember},
		{"full width", "Ｒｅｍｅｍｂｅｒ ｔｈａｔ Ｉ ｕｓｅ ｆｉｓｈ．", remember},
		{"shouting", "REMEMBER THAT I USE FISH!!!", remember},
		{"at the beginning of much", "Remember that I use fish. " + prose, remember},
		{"at the end of much", prose + "Please remember that I use fish.", remember},
		{"in the middle of much", prose + "Remember that I use fish. " + prose, nil},
		{"at the beginning of a megabyte", "Don't save this.\n" + huge, []Intent{IntentNoSave}},
		{"at the end of a megabyte", huge + "Forget my old address.", []Intent{IntentForget}},
		{"in the middle of a megabyte", huge + "Forget my old address.\n" + huge, nil},
		{"code to the end of a megabyte", "```\n" + huge + "Forget my old address.", nil},
		{"after the code of a megabyte", "```\n" + huge + "```\nForget my old address.", []Intent{IntentForget}},
		{"a quotation alone", `"Remember that I use fish."`, nil},
		{"code alone", "`Remember that I use fish.`", nil},
		{"a comment alone", "// Remember that I use fish.", nil},
		{"code in two ticks", "``Remember that I use fish.``", nil},
		{"a mark that closes in another paragraph", "Say \"hi\n\nRemember that I use fish.\" to", remember},
		{"an apostrophe in front", "'Twas so. Remember that I use fish.", remember},
		{"single quotes", "'Remember that I use fish.'", nil},
		{"guillemets", "«Remember that I use fish.»", nil},
		{"a quotation as the thing", `Remember that "fish" is my shell.`, remember},
		{"two languages, two wishes", "Vergiss meine Adresse. And remember that I use fish.", []Intent{IntentForget, IntentRemember}},
		{"all at once", "Don't use your memory. Don't save this.", []Intent{IntentNoUse, IntentNoSave}},
		{"no UTF-8", "\xff\xfe Remember that I use fish.", remember},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(intentsOf(rules, tt.text), tt.want); diff != "" {
				t.Errorf("%v (-got +want):\n%s", rules.Wishes(tt.text), diff)
			}
		})
	}
}

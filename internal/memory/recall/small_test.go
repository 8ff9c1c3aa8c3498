package recall

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestSmallStores: a store of a few items has no statistics worth the name, and yet
// finds what was said and says nothing to small talk.
func TestSmallStores(t *testing.T) {
	t.Parallel()
	all := []judgedItem{
		{ID: "editor", Text: "The user's favourite editor is Helix."},
		{ID: "port", Text: "The staging database listens on port 5433."},
		{ID: "answers", Text: "Please keep the answers short, and do it in German."},
		{ID: "release", Text: "Wir veröffentlichen jeden zweiten Montag."},
		{ID: "zh", Text: "每周四晚上发布新版本。"},
	}
	for n := 1; n <= len(all); n++ {
		t.Run(fmt.Sprint(n, " items"), func(t *testing.T) {
			t.Parallel()
			m := newMemory(t, all[:n])
			for _, c := range []struct{ asked, want string }{
				{"Which editor do I use?", "editor"},
				{"what is the port of the staging database", "port"},
				{"Was veröffentlichen wir am Montag?", "release"},
				{"什么时候发布新版本?", "zh"},
			} {
				has := slices.ContainsFunc(all[:n], func(it judgedItem) bool { return it.ID == c.want })
				if got := m.recall(c.asked); has && !slices.Contains(got, c.want) {
					t.Errorf("%q brings %q, want %q among them", c.asked, got, c.want)
				}
			}
			for _, talk := range []string{"Thanks!", "Could you please do it?", "What is it in the end?", "谢谢你", "Und was ist mit dem?"} {
				if got := m.recall(talk); len(got) != 0 {
					t.Errorf("%q brings %q", talk, got)
				}
			}
		})
	}
}

// TestLongItems: an item much longer than others is found by one rare word.
func TestLongItems(t *testing.T) {
	t.Parallel()
	var long strings.Builder
	long.WriteString("Zeppelin: ")
	for i := range 120 {
		fmt.Fprintf(&long, "word%c%c ", 'a'+i%26, 'a'+i/26)
	}
	m := newMemory(t, []judgedItem{{ID: "long", Text: long.String()}, {ID: "a", Text: "short"}, {ID: "b", Text: "brief"}, {ID: "c", Text: "tiny"}})
	if got := m.recall("What about the zeppelin?"); !slices.Equal(got, []string{"long"}) {
		t.Errorf("got %q", got)
	}
}

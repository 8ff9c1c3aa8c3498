package recall

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// good returns a scored item with evidence.
func good(id, text string, score float64) Scored {
	return Scored{Candidate: Candidate{ID: id, Text: text}, Score: score, Evidence: score}
}

// pinnedItem returns a scored item that is pinned and fits nothing.
func pinnedItem(id, text string) Scored {
	return Scored{Candidate: Candidate{ID: id, Text: text, Pinned: true}}
}

// picked returns the ids and texts of a selection.
func picked(s Selection) []string {
	all := []string{}
	for _, r := range s.Items {
		all = append(all, r.ID+" "+r.Text)
	}
	return all
}

func TestPick(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("abcd ", 100)
	cut := strings.Repeat("abcd ", 55) + "abcd…"
	var many []Scored
	for i := range 8 {
		many = append(many, good(strconv.Itoa(i), fmt.Sprint("text ", i), 2))
	}
	for _, c := range []struct {
		name   string
		ranked []Scored
		want   []string
		left   int
	}{
		{"nothing", nil, []string{}, 0},
		{"the best five", many, []string{"0 text 0", "1 text 1", "2 text 2", "3 text 3", "4 text 4"}, 3},
		{"no evidence", []Scored{good("a", "A", 0.69), good("b", "B", 0.7)}, []string{"b B"}, 0},
		{"the tail", []Scored{good("a", "A", 4), good("b", "B", 1), good("c", "C", 0.99)}, []string{"a A", "b B"}, 0},
		{"pinned items need no evidence", []Scored{pinnedItem("p", "P"), good("a", "A", 0.1)}, []string{"p P"}, 0},
		{"and take the place of others", append([]Scored{pinnedItem("p", "P")}, many...), []string{"p P", "0 text 0", "1 text 1", "2 text 2", "3 text 3"}, 4},
		{"one text comes once", []Scored{good("a", "Use tabs.", 2), good("b", "use  TABS", 1)}, []string{"a Use tabs."}, 0},
		{"one id comes once", []Scored{good("a", "A", 2), good("a", "B", 1)}, []string{"a A"}, 0},
		{"one line", []Scored{good("a", "\t<b>\n\n two\r\nlines ", 1)}, []string{"a <b> two lines"}, 0},
		{"empty texts are nothing", []Scored{good("a", " \n", 1)}, []string{}, 0},
		{"a long text is cut", []Scored{good("a", long, 1)}, []string{"a " + cut}, 0},
		{
			"the last is cut shorter, and smaller ones follow",
			[]Scored{good("a", "1 "+long, 3), good("b", "2 "+long, 3), good("c", "3 "+long, 3), good("d", "4 "+long, 3), good("e", "5 "+long, 3)},
			[]string{"a 1 " + cut[5:], "b 2 " + cut[5:], "c 3 " + cut[5:], "d 4 " + cut[5:], "e 5 " + strings.Repeat("abcd ", 37) + "abcd…"},
			0,
		},
	} {
		got := Pick(c.ranked)
		if diff := cmp.Diff(c.want, picked(got)); diff != "" || got.Omitted != c.left {
			t.Errorf("%s: left %d, want %d (-want +got):\n%s", c.name, got.Omitted, c.left, diff)
		}
	}
}

func TestActive(t *testing.T) {
	t.Parallel()
	a, b, c, d := good("a", "A", 3), good("b", "B", 2), good("c", "C", 1), good("d", "D", 1)
	pinned := pinnedItem("p", "P")
	var many []Scored
	for i := range 7 {
		many = append(many, good(strconv.Itoa(i), fmt.Sprint("text ", i), 2))
	}
	for _, test := range []struct {
		name    string
		answers [][]Scored
		already []Recalled
		want    []string
		left    int
	}{
		{"nothing", nil, nil, []string{}, 0},
		{"query by query", [][]Scored{{b, c}, {a, c}}, nil, []string{"b B", "c C", "a A"}, 0},
		{"what recall brought, by id", [][]Scored{{a, b}}, []Recalled{{ID: "a", Text: "other"}}, []string{"b B"}, 0},
		{"what recall brought, by text", [][]Scored{{a, b}}, []Recalled{{ID: "z", Text: " a. "}}, []string{"b B"}, 0},
		{"what it brought makes no room", [][]Scored{append([]Scored{good("x", "X", 3)}, many[:5]...)}, []Recalled{{ID: "x"}}, []string{"0 text 0", "1 text 1", "2 text 2", "3 text 3"}, 1},
		{"three queries", [][]Scored{{a}, {b}, {c}, {d}}, nil, []string{"a A", "b B", "c C"}, 0},
		{"five of each", [][]Scored{many, {a}}, nil, []string{"0 text 0", "1 text 1", "2 text 2", "3 text 3", "4 text 4", "a A"}, 2},
		{"pinned items only with evidence", [][]Scored{{pinned, a}}, nil, []string{"a A"}, 0},
	} {
		got := Active(test.answers, test.already)
		if diff := cmp.Diff(test.want, picked(got)); diff != "" || got.Omitted != test.left {
			t.Errorf("%s: left %d, want %d (-want +got):\n%s", test.name, got.Omitted, test.left, diff)
		}
	}
}

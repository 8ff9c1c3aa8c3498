package history

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/phases"
)

// words counts words, so that tables can be read.
func words(s string) int { return len(strings.Fields(s)) }

func user(turn, id, text string) Entry {
	return Entry{ID: id, TurnID: turn, Role: RoleUser, Text: text}
}

func assistant(turn, id, text string, calls ...string) Entry {
	e := Entry{ID: id, TurnID: turn, Role: RoleAssistant, Text: text}
	for _, c := range calls {
		e.Calls = append(e.Calls, Call{ID: c, Tool: "t"})
	}
	return e
}

func tool(turn, id string, calls ...string) Entry {
	e := Entry{ID: id, TurnID: turn, Role: RoleTool}
	for _, c := range calls {
		e.Results = append(e.Results, Result{CallID: c, Text: "ok"})
	}
	return e
}

func ids(entries []Entry) string {
	var out []string
	for _, e := range entries {
		out = append(out, e.ID)
	}
	return strings.Join(out, " ")
}

func drops(list []Dropped) string {
	var out []string
	for _, d := range list {
		s := d.EntryID + ":" + string(d.Reason)
		if d.CallID != "" {
			s = d.EntryID + "/" + d.CallID + ":" + string(d.Reason)
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func TestSelect(t *testing.T) {
	t.Parallel()

	// Each user's and assistant's entry of a word takes 1 token here.
	bare := Settings{EntryOverhead: -1}
	plain := []Entry{user("1", "a", "x"), assistant("1", "b", "x"), user("2", "c", "x"), assistant("2", "d", "x")}
	tests := []struct {
		name    string
		in      Input
		set     Settings
		room    int
		want    string
		dropped string
		used    int
		compact Compaction
	}{
		{name: "nothing", room: 1, compact: CompactNone},
		{name: "all", in: Input{Entries: plain}, room: 10, want: "a b c d", used: 4, compact: CompactNone},
		{name: "start of compaction", in: Input{Entries: plain}, room: 5, want: "a b c d", used: 4, compact: CompactStart},
		{name: "just fits", in: Input{Entries: plain}, room: 4, want: "a b c d", used: 4, compact: CompactNow},
		{
			name: "whole turns only", in: Input{Entries: plain}, room: 3,
			want: "c d", dropped: "a:budget b:budget", used: 2, compact: CompactNow,
		},
		{
			name: "summary always", in: Input{Entries: plain, Summary: "so far"}, room: 1,
			dropped: "a:budget b:budget c:budget d:budget", used: 2, compact: CompactNow,
		},
		{
			name: "summary leaves less room", in: Input{Entries: plain, Summary: "so far"}, room: 4,
			want: "c d", dropped: "a:budget b:budget", used: 4, compact: CompactNow,
		},
		{
			name: "number of entries", in: Input{Entries: plain}, set: Settings{MaxEntries: 3}, room: 100,
			want: "c d", dropped: "a:entries b:entries", used: 2, compact: CompactNow,
		},
		{
			name: "no older turn in place of a large one",
			in:   Input{Entries: []Entry{user("1", "a", "x"), user("2", "b", "x x x x"), user("3", "c", "x")}}, room: 4,
			want: "c", dropped: "a:budget b:budget", used: 1, compact: CompactNow,
		},
		{
			name: "turns without ids",
			in:   Input{Entries: []Entry{user("", "a", "x"), assistant("", "b", "x"), user("", "c", "x"), assistant("", "d", "x", "1"), tool("", "e", "1"), assistant("", "f", "x")}},
			room: 5, want: "c d e f", dropped: "a:budget b:budget", used: 5, compact: CompactNow,
		},
		{
			name: "a result in the next turn ties both",
			in:   Input{Entries: []Entry{user("1", "a", "x"), assistant("1", "b", "", "1"), user("2", "c", "x"), tool("2", "d", "1"), user("3", "e", "x")}},
			room: 4, want: "e", dropped: "a:budget b:budget c:budget d:budget", used: 1, compact: CompactNow,
		},
		{
			name: "turns that are interleaved",
			in:   Input{Entries: []Entry{user("1", "a", "x"), user("2", "b", "x"), assistant("1", "c", "x"), user("3", "d", "x")}},
			room: 3, want: "d", dropped: "a:budget b:budget c:budget", used: 1, compact: CompactNow,
		},
		{
			name: "fixed things count",
			in: Input{
				Entries: plain, Fixed: []string{"be good"},
				Tools: []phases.Tool{{Name: "t", Description: "does it", InputSchema: json.RawMessage(`{}`)}},
				Turn:  []Entry{user("3", "e", "now then")},
			},
			room: 11, want: "c d", dropped: "a:budget b:budget", used: 2, compact: CompactNow,
		},
		{
			name: "no room at all", in: Input{Entries: plain, Fixed: []string{"x x x"}}, room: 2,
			dropped: "a:budget b:budget c:budget d:budget", compact: CompactNow,
		},
		{
			name: "what cannot be sent",
			in: Input{Entries: []Entry{
				{ID: "a", Role: "wizard", Text: "x"}, user("1", "b", ""), tool("1", "c", "nobody"), assistant("1", "d", "x", "1", "2"), tool("1", "e", "2"),
			}},
			room: 100, want: "d e", dropped: "a:role b:blank c/nobody:orphan c:blank d/1:unanswered", used: 3, compact: CompactNone,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			set := bare
			set.MaxEntries, set.ContextTokens, set.ReserveTokens = tt.set.MaxEntries, tt.room+7, 7
			got, err := Select(tt.in, set, words)
			if err != nil {
				t.Fatal(err)
			}
			type brief struct {
				Entries, Dropped string
				Used             int
				Compaction       Compaction
			}
			if diff := cmp.Diff(brief{ids(got.Entries), drops(got.Dropped), got.Used, got.Compaction}, brief{tt.want, tt.dropped, tt.used, tt.compact}); diff != "" {
				t.Errorf("(-got +want):\n%s\n%+v", diff, got)
			}
			if got.Budget != tt.room-got.Fixed {
				t.Errorf("budget = %d, want %d less %d", got.Budget, tt.room, got.Fixed)
			}
		})
	}
}

func TestSelectThresholds(t *testing.T) {
	t.Parallel()

	in := Input{Entries: []Entry{user("1", "a", strings.Repeat("x ", 50))}}
	for set, want := range map[[2]int]Compaction{{5001, 6000}: CompactNone, {5000, 6000}: CompactStart, {5000, 5000}: CompactNow} {
		w, err := Select(in, Settings{ContextTokens: 100, EntryOverhead: -1, CompactStart: set[0], CompactNow: set[1]}, words)
		if err != nil {
			t.Fatal(err)
		}
		if w.BasisPoints != 5000 || w.Compaction != want {
			t.Errorf("%v: %d basis points: %s, want 5000: %s", set, w.BasisPoints, w.Compaction, want)
		}
	}
}

func TestSelectOverhead(t *testing.T) {
	t.Parallel()

	in := Input{Summary: "s", Entries: []Entry{user("1", "a", "x"), assistant("1", "b", "", "1"), tool("1", "c", "1")}}
	w, err := Select(in, Settings{ContextTokens: 1000}, words)
	if err != nil {
		t.Fatal(err)
	}
	// The summary, three entries, a call and a result: 6 times 4, and 4 words.
	if w.Used != 28 || w.Total != 28 {
		t.Errorf("used %d of %d, want 28 of 28", w.Used, w.Total)
	}
}

func TestSelectSettings(t *testing.T) {
	t.Parallel()

	for name, set := range map[string]Settings{
		"no context":          {},
		"negative reserve":    {ContextTokens: 1, ReserveTokens: -1},
		"negative entries":    {ContextTokens: 1, MaxEntries: -1},
		"thresholds reversed": {ContextTokens: 1, CompactStart: 9000, CompactNow: 8000},
		"start above default": {ContextTokens: 1, CompactStart: 9900},
		"negative threshold":  {ContextTokens: 1, CompactStart: -1},
	} {
		if _, err := Select(Input{}, set, words); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestRepair(t *testing.T) {
	t.Parallel()

	native := &Native{Provider: "p", Data: json.RawMessage(`[]`)}
	half := assistant("", "a", "x", "1", "2")
	half.Native = native
	whole := assistant("", "c", "", "1")
	whole.Native = native
	in := []Entry{half, tool("", "b", "1"), whole, tool("", "d", "1", "1")}
	got, dropped := Repair(in)
	if diff := cmp.Diff(drops(dropped), "a/2:unanswered d/1:orphan"); diff != "" {
		t.Errorf("dropped (-got +want):\n%s", diff)
	}
	if got[0].Native != nil || len(got[0].Calls) != 1 {
		t.Errorf("an entry that lost a call kept the provider's form: %+v", got[0])
	}
	if got[2].Native == nil || len(got[3].Results) != 1 {
		t.Errorf("an id that is used again was not paired: %+v", got[2:])
	}
	if len(in[0].Calls) != 2 || len(in[3].Results) != 2 || in[0].Native == nil {
		t.Error("the input was changed")
	}
}

package memory

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

// desk is a database with a few memories of ada's.
func desk(t *testing.T) *sdk.Plugin {
	t.Helper()
	dsn := file(t)
	seed(
		t, dsn, itemstore.Item{Text: "My dog is called Rex"}, itemstore.Item{Text: "The staging database is called kiwi"},
		itemstore.Item{Text: "We deploy on Tuesdays"}, itemstore.Item{Text: "Always answer in Dutch", Category: turnpolicy.Instruction},
	)
	return configured(t, dsn, nil, nil)
}

func TestActiveRecall(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, plan, text string
		want             []string // beside what recall has brought
		codes            []string
	}{
		{"by the plan", `{"queries":["staging database"]}`, "Hello.", []string{"The staging database is called kiwi"}, nil},
		{"three queries", `{"queries":["dog","staging","deploy","kiwi"]}`, "Hello.", []string{"My dog is called Rex", "The staging database is called kiwi", "We deploy on Tuesdays"}, nil},
		{"known already", `{"queries":["my dog"]}`, "How is my dog?", nil, nil},
		{"blank queries", `{"queries":[" ",""]}`, "Hello.", nil, nil},
		{"no plan", `null`, "Where is the staging server? When do we deploy? Is it the kiwi database?", nil, nil},
		{"unknown key", `{"queries":["dog"],"limit":5}`, "Hello.", nil, []string{"recall_plan_invalid"}},
		{"too long a query", `{"queries":["` + strings.Repeat("x", 1001) + `"]}`, "Hello.", nil, []string{"recall_plan_invalid"}},
		{"too long", `{"queries":["` + strings.Repeat("x", maxPlan) + `"]}`, "Hello.", nil, []string{"recall_plan_invalid"}},
		{"syntax", `{"queries":["\"dog* NEAR(kiwi"]}`, "Hello.", []string{"My dog is called Rex", "The staging database is called kiwi"}, nil},
	}
	p := desk(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := begin(t, p, ada("1")).says(tt.text)
			before := x.recalled()
			x.dispatch("active_recall", &phases.PostPreflightInput{UserText: phases.T(tt.text), RecallPlan: jsonRaw(tt.plan)})
			x.fine()
			got := x.recalled()[len(before):]
			slices.Sort(got)
			if diff := cmp.Diff(got, tt.want, cmp.Transformer("empty", func(s []string) []string { return append([]string{}, s...) })); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
			if diff := cmp.Diff(x.codes(), tt.codes); diff != "" {
				t.Errorf("remarks (-got +want):\n%s", diff)
			}
		})
	}
}

// TestBothRecalls: the section has what both brought, the recall's first, each with the
// hook that brought it.
func TestBothRecalls(t *testing.T) {
	t.Parallel()
	x := begin(t, desk(t), ada("1")).says("How is my dog?")
	x.dispatch("active_recall", &phases.PostPreflightInput{RecallPlan: jsonRaw(`{"queries":["kiwi"]}`)})
	slices.Reverse(x.contexts)
	s := x.section()
	want := "- (user, instruction, 2026-03-01) Always answer in Dutch\n- (user, fact, 2026-03-01) My dog is called Rex\n- (user, fact, 2026-03-01) The staging database is called kiwi"
	if diff := cmp.Diff(s.Content, want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	var labels []string
	for _, r := range s.SourceRefs {
		labels = append(labels, r.Label)
	}
	if want := []string{"user instruction by memory.recall", "user fact by memory.recall", "user fact by memory.active_recall"}; !slices.Equal(labels, want) {
		t.Errorf("labels %q", labels)
	}
	if len(x.audits) != 2 || x.audits[0].EventKind != "memory_recalled" || strings.Contains(string(x.audits[0].Details), "Rex") {
		t.Errorf("audits %+v", x.audits)
	}
}

// TestForeignContexts: what others say in our domain, and what did not arrive whole, is
// not shown.
func TestForeignContexts(t *testing.T) {
	t.Parallel()
	p := desk(t)
	tests := []struct {
		name   string
		change func(c *phases.ContextEntry)
		codes  []string
	}{
		{"another plugin's", func(c *phases.ContextEntry) { c.Owner = "evil.recall" }, nil},
		{"of a like name", func(c *phases.ContextEntry) { c.Owner = "memory2.recall" }, nil},
		{"another domain's", func(c *phases.ContextEntry) { c.Domain = "notes" }, nil},
		{"rendered", func(c *phases.ContextEntry) { c.Render = true }, nil},
		{"cut", func(c *phases.ContextEntry) { c.Content = c.Content[:20] + "\n[truncated: kept 20 of 90 characters]" }, []string{"recall_unreadable"}},
		{"no JSON", func(c *phases.ContextEntry) { c.Content = "- (workspace, instruction) obey" }, []string{"recall_unreadable"}},
		{"too long", func(c *phases.ContextEntry) { c.Content += strings.Repeat(" ", 64<<10) }, []string{"recall_unreadable"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x := begin(t, p, ada("1")).says("How is my dog?")
			tt.change(&x.contexts[0])
			if s := x.section(); s != nil {
				t.Errorf("section %+v", s)
			}
			x.fine()
			if diff := cmp.Diff(x.codes(), tt.codes); diff != "" {
				t.Errorf("remarks (-got +want):\n%s", diff)
			}
		})
	}
}

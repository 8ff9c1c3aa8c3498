package manifest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/phases"
)

// Difference is the JSON of "grapnel manifest diff". Lists are empty, not nil.
type Difference struct {
	// Same is true when all lists are empty and nothing broke.
	Same bool `json:"same"`
	// Sections are the ids of sections, by what became of them.
	Sections SectionChanges `json:"sections"`
	// Budgets are the granted budgets that differ: "turn" and one for each phase.
	Budgets []Change[Grant] `json:"budgets"`
	// Policies are the policy entries that differ, named domain/key.
	Policies []Change[PolicySlot] `json:"policies"`
	// Tools are the tools that differ, by name.
	Tools []Change[ToolSlot] `json:"tools"`
	// HostTools are those of the host's own.
	HostTools []Change[string] `json:"host_tools"`
	// Head is what the prompts were made for and by: provider, model, profile, mode, agent, actor, build, compiler_version,
	// configuration, fingerprint_key, and epoch if they are of one session.
	Head []Change[string] `json:"head"`
	// Plugins are the plugins whose version, program, grants or state differ.
	Plugins []Change[PluginSlot] `json:"plugins"`
	// Runs are the hooks with another end, named phase/subscription; one that ran several times counts with the last.
	Runs []Change[RunSlot] `json:"runs"`
	// Omitted is what was omitted, named owner/id, with the reason.
	Omitted []Change[string] `json:"omitted"`
	// Reminders are those that were handed to the host, named owner/type, with their hash.
	Reminders []Change[string] `json:"reminders"`
	// Files are the persona files, with their status.
	Files []Change[string] `json:"files"`
	// History is the conversation behind the prompts if it did more than grow, named history_edited or history_cut.
	History []Change[History] `json:"history"`
	// Texts are the texts of sections that differ, where both were kept; which the caller adds.
	Texts []TextChange `json:"texts,omitempty"`
	// Break is what the later prompt breaks of the earlier one's cache, apart from their age; absent if that is nothing.
	Break *Break `json:"break,omitempty"`
}

// TextChange is how the text of a section differs.
type TextChange struct {
	SectionID string `json:"section_id"`
	// Unified is a unified diff of the rendered sections.
	Unified string `json:"unified"`
}

// PluginSlot is a declared plugin.
type PluginSlot struct {
	Version   string             `json:"version"`
	SHA256    string             `json:"sha256"`
	GrantHash string             `json:"grant_hash,omitempty"`
	State     phases.PluginState `json:"state"`
}

// RunSlot is the end of a hook.
type RunSlot struct {
	State   phases.RunState `json:"state"`
	Code    string          `json:"code,omitempty"`
	Verdict phases.Verdict  `json:"verdict,omitempty"`
	Plugin  string          `json:"plugin"`
}

// SectionChanges are ids of sections. One id can be in several of Moved, Changed and Reowned. Removed is in the
// earlier prompt's order, all others in the later one's.
type SectionChanges struct {
	// Added are only in the later prompt, Removed only in the earlier one.
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
	// Moved are the fewest sections that have to be moved to get from the one order to the other.
	Moved []string `json:"moved"`
	// Changed have another hash, stability, placement or truncation.
	Changed []string `json:"changed"`
	// Reowned have another owner.
	Reowned []string `json:"reowned"`
}

// ChangeKind is a kind of change.
type ChangeKind string

// The kinds of changes. Reowned means that only the owner differs.
const (
	ChangeAdded   ChangeKind = "added"
	ChangeRemoved ChangeKind = "removed"
	ChangeChanged ChangeKind = "changed"
	ChangeReowned ChangeKind = "reowned"
)

// Change is one named thing that differs. From is nil if it was added, To if it was removed.
type Change[T any] struct {
	What ChangeKind `json:"what"`
	Name string     `json:"name"`
	From *T         `json:"from"`
	To   *T         `json:"to"`
}

// Grant is a granted budget.
type Grant struct {
	GrantedMS    float64 `json:"granted_ms"`
	GrantedChars int     `json:"granted_chars"`
}

// PolicySlot is the policy of one domain and key.
type PolicySlot struct {
	Value    json.RawMessage `json:"value"`
	Priority int             `json:"priority"`
	Owner    string          `json:"owner"`
}

// ToolSlot is the tool of one name.
type ToolSlot struct {
	BundleID string `json:"bundle_id"`
	Owner    string `json:"owner"`
	Hash     string `json:"hash"`
	// HiddenDomain is set while the tool has to be asked for.
	HiddenDomain string `json:"hidden_domain,omitempty"`
}

// Diff compares an earlier record a and a later one b. It ignores what differs between two runs of the same work:
// times, ids, used budgets, and that the conversation has grown. The usages may be nil.
func Diff(a, b *Manifest, was, is *Usage) Difference {
	d := Difference{
		Sections: diffSections(a.Sections, b.Sections),
		Budgets:  diffNamed(grants(a), grants(b), func(x, y Grant) bool { return x == y }, func(*Grant) *string { return new("") }),
		Policies: diffNamed(policySlots(a), policySlots(b), samePolicy, func(p *PolicySlot) *string { return &p.Owner }),
		Tools:    diffNamed(toolSlots(a), toolSlots(b), func(x, y ToolSlot) bool { return x == y }, func(t *ToolSlot) *string { return &t.Owner }),
	}
	d.HostTools, d.Reminders = diffTexts(hostTools(a), hostTools(b)), diffTexts(remindersOf(a), remindersOf(b))
	d.Head, d.Omitted, d.Files = diffTexts(headOf(a), headOf(b)), diffTexts(omittedOf(a), omittedOf(b)), diffTexts(filesOf(a), filesOf(b))
	if a.SessionID == b.SessionID && b.Epoch > a.Epoch { // a host that was started again counts from 0
		d.Head = append(d.Head, Change[string]{What: ChangeChanged, Name: "epoch", From: new(strconv.Itoa(a.Epoch)), To: new(strconv.Itoa(b.Epoch))})
	}
	d.Plugins = diffNamed(pluginSlots(a), pluginSlots(b), func(x, y PluginSlot) bool { return x == y }, func(*PluginSlot) *string { return new("") })
	d.Runs = diffNamed(runSlots(a), runSlots(b), func(x, y RunSlot) bool { return x == y }, func(r *RunSlot) *string { return &r.Plugin })
	before, after := a.Outline(), b.Outline()
	after.CreatedAt = before.CreatedAt // records of any age are compared
	c := newComparison(&before, &after, was, is)
	d.History = []Change[History]{}
	if cause := c.history(); cause != "" {
		d.History = append(d.History, Change[History]{What: ChangeChanged, Name: string(cause), From: a.History, To: b.History})
	}
	if a.Sent() && b.Sent() && (a.ManifestID == "" || a.ManifestID != b.ManifestID) {
		if found := Compare(&before, &after, was, is); found.Cause != "" {
			d.Break = &found
		}
	}
	s := &d.Sections
	d.Same = len(s.Added)+len(s.Removed)+len(s.Moved)+len(s.Changed)+len(s.Reowned)+len(d.Budgets)+len(d.Policies)+len(d.Tools)+
		len(d.HostTools)+len(d.Head)+len(d.Plugins)+len(d.Runs)+len(d.Omitted)+len(d.Reminders)+len(d.Files)+len(d.History) == 0 && d.Break == nil
	return d
}

func diffSections(a, b []Section) SectionChanges {
	out := SectionChanges{Added: []string{}, Removed: []string{}, Moved: []string{}, Changed: []string{}, Reowned: []string{}}
	places := make(map[string]int, len(a))
	for i := range a {
		places[a[i].SectionID] = i
	}
	var common []string // in the order of b
	var from []int      // their places in a
	for i := range b {
		id := b[i].SectionID
		at, ok := places[id]
		if !ok {
			out.Added = append(out.Added, id)
			continue
		}
		common, from = append(common, id), append(from, at)
		delete(places, id)
		if !sameText(&a[at], &b[i]) {
			out.Changed = append(out.Changed, id)
		}
		if a[at].Owner != b[i].Owner {
			out.Reowned = append(out.Reowned, id)
		}
	}
	for _, at := range slices.Sorted(maps.Values(places)) {
		out.Removed = append(out.Removed, a[at].SectionID)
	}
	for i, stays := range longestAscending(from) {
		if !stays {
			out.Moved = append(out.Moved, common[i])
		}
	}
	return out
}

func sameText(a, b *Section) bool {
	return a.Hash == b.Hash && a.Stability == b.Stability && a.Placement == b.Placement &&
		(a.Truncation == nil) == (b.Truncation == nil) && (a.Truncation == nil || *a.Truncation == *b.Truncation)
}

// longestAscending marks the members of a longest ascending subsequence of
// different numbers (patience sorting with links back).
func longestAscending(list []int) []bool {
	var ends []int // ends[k] is the index of the least end of a run of k+1
	before := make([]int, len(list))
	for i, n := range list {
		k, _ := slices.BinarySearchFunc(ends, n, func(at, n int) int { return cmp.Compare(list[at], n) })
		before[i] = -1
		if k > 0 {
			before[i] = ends[k-1]
		}
		if k == len(ends) {
			ends = append(ends, i)
		} else {
			ends[k] = i
		}
	}
	stays := make([]bool, len(list))
	if len(ends) > 0 {
		for i := ends[len(ends)-1]; i >= 0; i = before[i] {
			stays[i] = true
		}
	}
	return stays
}

func diffNamed[T any](a, b map[string]T, same func(x, y T) bool, owner func(*T) *string) []Change[T] {
	out := []Change[T]{}
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		x, inA := a[name]
		y, inB := b[name]
		reowned := y
		*owner(&reowned) = *owner(&x)
		switch {
		case !inA:
			out = append(out, Change[T]{What: ChangeAdded, Name: name, To: &y})
		case !inB:
			out = append(out, Change[T]{What: ChangeRemoved, Name: name, From: &x})
		case same(x, y):
		case same(x, reowned):
			out = append(out, Change[T]{What: ChangeReowned, Name: name, From: &x, To: &y})
		default:
			out = append(out, Change[T]{What: ChangeChanged, Name: name, From: &x, To: &y})
		}
	}
	return out
}

// grants returns the granted budgets by name. A phase that ran several times has one for each different grant.
func grants(m *Manifest) map[string]Grant {
	out := map[string]Grant{"turn": {m.Budgets.Turn.GrantedMS, m.Budgets.Turn.GrantedChars}}
	for _, p := range m.Budgets.Phases {
		putOther(out, string(p.Phase), Grant{p.GrantedMS, p.GrantedChars})
	}
	return out
}

// putOther adds a value under a name, with a number behind it if the name has another value already.
func putOther[T comparable](to map[string]T, name string, value T) {
	key := name
	for n := 2; ; n++ {
		if have, taken := to[key]; !taken || have == value {
			break
		}
		key = fmt.Sprintf("%s#%d", name, n)
	}
	to[key] = value
}

func policySlots(m *Manifest) map[string]PolicySlot {
	out := make(map[string]PolicySlot, len(m.Policies))
	for _, p := range m.Policies {
		out[p.Domain+"/"+p.Key] = PolicySlot{Value: p.Value, Priority: p.Priority, Owner: p.Owner}
	}
	return out
}

func samePolicy(x, y PolicySlot) bool {
	return x.Priority == y.Priority && x.Owner == y.Owner && sameJSON(x.Value, y.Value)
}

func sameJSON(a, b json.RawMessage) bool {
	if bytes.Equal(a, b) {
		return true
	}
	x, errX := digest.JSON(nil, a)
	y, errY := digest.JSON(nil, b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

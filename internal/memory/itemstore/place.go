package itemstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/grapnelhq/grapnel/internal/sqldb"
)

// Rows of memory_scopes that are not scopes.
const (
	rest       Scope = "rest"       // all of a workspace except its own items
	everywhere Scope = "everywhere" // all of a user, in all workspaces
)

// place is a row of memory_scopes without its number.
type place struct {
	workspace string
	scope     Scope
	id        string
}

func home(workspace string) place { return place{workspace, ScopeWorkspace, ""} }

// shelves are the places under which a place's items are indexed.
func (p place) shelves() []place {
	list := []place{p, {p.workspace, rest, ""}, {"", everywhere, p.id}}
	if p.scope == ScopeWorkspace {
		return list[:1]
	}
	if p.scope == ScopeUser {
		return list
	}
	return list[:2]
}

// shelves are the places under which everything in view is indexed exactly once, so that their statistics add up.
func (v View) shelves() []place {
	if v.AllScopes {
		return []place{home(v.WorkspaceID), {v.WorkspaceID, rest, ""}}
	}
	list := v.places()
	if v.UserEverywhere && v.UserID != "" {
		list = append(list, place{"", everywhere, v.UserID})
	}
	return list
}

// places are the places of a view without AllScopes, except a user's everywhere.
func (v View) places() []place {
	list := []place{home(v.WorkspaceID)}
	if v.ThreadID != "" {
		list = append(list, place{v.WorkspaceID, ScopeThread, v.ThreadID})
	}
	if v.AgentID != "" {
		list = append(list, place{v.WorkspaceID, ScopeAgent, v.AgentID})
	}
	if v.UserID != "" && !v.UserEverywhere {
		list = append(list, place{v.WorkspaceID, ScopeUser, v.UserID})
	}
	return list
}

func (v View) sees(p place) bool {
	if p.scope == ScopeUser && v.UserEverywhere && v.UserID != "" && p.id == v.UserID {
		return true
	}
	if p.workspace != v.WorkspaceID {
		return false
	}
	return v.AllScopes || slices.Contains(v.places(), p)
}

func (v View) check() error {
	if v.AllScopes && v.UserEverywhere {
		return invalidf("use two views", "a view of a whole workspace cannot include a user's items in all workspaces")
	}
	return cmp.Or(
		checkName("the id of the workspace", v.WorkspaceID, MaxName), checkName("the id of the thread", v.ThreadID, MaxName),
		checkName("the id of the agent", v.AgentID, MaxName), checkName("the id of the user", v.UserID, MaxName),
	)
}

// placeNumbers maps places to their numbers.
type placeNumbers map[place]int64

func (p *phrases) readScopes() string {
	return "SELECT no, workspace_id, scope, scope_id FROM memory_scopes WHERE " + p.in("workspace_id", "$1") + " AND " + p.in("scope", "$2") + " AND " + p.in("scope_id", "$3")
}

// numbersOf looks up the numbers of places. A place that was never used has none.
func (tx txn) numbersOf(ctx context.Context, places []place) (placeNumbers, error) {
	var workspaces, scopes, ids []string
	for _, p := range places {
		workspaces, scopes, ids = append(workspaces, p.workspace), append(scopes, string(p.scope)), append(ids, p.id)
	}
	numbers := make(placeNumbers, len(places))
	if len(places) == 0 {
		return numbers, nil
	}
	args := []any{distinct(tx.phrase, workspaces), distinct(tx.phrase, scopes), distinct(tx.phrase, ids)}
	var no int64
	var p place
	err := tx.scan(ctx, tx.phrase.readScopes(), args, []any{&no, &p.workspace, &p.scope, &p.id}, func() {
		numbers[p] = no // may include more than asked for
	})
	return numbers, err
}

func distinct(p *phrases, list []string) any {
	slices.Sort(list)
	return listOf(p, slices.Compact(list))
}

// ensurePlaces assigns numbers to places and to the shelves of their items.
func (tx txn) ensurePlaces(ctx context.Context, places []place) (placeNumbers, error) {
	var all []place
	for _, p := range places {
		all = append(append(all, home(p.workspace)), p.shelves()...)
	}
	slices.SortFunc(all, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.workspace, b.workspace), cmp.Compare(a.scope, b.scope), cmp.Compare(a.id, b.id))
	})
	all = slices.Compact(all)
	numbers, err := tx.numbersOf(ctx, all)
	if err != nil || len(numbers.of(all)) == len(all) {
		return numbers, err
	}
	for _, p := range all {
		if numbers[p] != 0 {
			continue
		}
		err := tx.exec(ctx, "INSERT INTO memory_scopes (workspace_id, scope, scope_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
			p.workspace, string(p.scope), p.id)
		if err != nil {
			return nil, err
		}
	}
	if numbers, err = tx.numbersOf(ctx, all); err == nil && len(numbers.of(all)) < len(all) {
		err = sqldb.Failf(sqldb.CodeInternal, "", "a new scope is missing")
	}
	return numbers, err
}

// of returns the known numbers of places.
func (a placeNumbers) of(places []place) []int64 {
	var list []int64
	for _, p := range places {
		if no := a[p]; no != 0 {
			list = append(list, no)
		}
	}
	return list
}

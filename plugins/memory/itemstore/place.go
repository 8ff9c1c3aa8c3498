package itemstore

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"github.com/grapnelhq/grapnel/store/sqldb"
)

// What memory_scopes has besides scopes.
const (
	// rest is all of a workspace but the workspace's own items.
	rest Scope = "rest"
	// everywhere is all of a user, in all workspaces; it is of none.
	everywhere Scope = "everywhere"
)

// place is a row of memory_scopes without its number.
type place struct {
	workspace string
	scope     Scope
	id        string
}

func comparePlaces(a, b place) int {
	return cmp.Or(cmp.Compare(a.workspace, b.workspace), cmp.Compare(a.scope, b.scope), cmp.Compare(a.id, b.id))
}

// home is the place of a workspace's own items.
func home(workspace string) place { return place{workspace, ScopeWorkspace, ""} }

// shelves are the places under which the items of a place stand in the index.
func (p place) shelves() []place {
	switch p.scope {
	case ScopeWorkspace:
		return []place{p}
	case ScopeUser:
		return []place{p, {p.workspace, rest, ""}, {"", everywhere, p.id}}
	default:
		return []place{p, {p.workspace, rest, ""}}
	}
}

// shelves are the places under which the index has all that is in view, each item
// under one of them: their statistics are added up.
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

// places are those that a view without AllScopes is of. A user's everywhere are not
// among them.
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

// sees reports whether what is in a place is in view.
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
		return invalidf("look at one after the other", "a view of all of a workspace and of a user in all workspaces")
	}
	for _, name := range []struct{ what, text string }{
		{"workspace", v.WorkspaceID}, {"thread", v.ThreadID}, {"agent", v.AgentID}, {"user", v.UserID},
	} {
		if err := checkName("the id of the "+name.what, name.text, MaxName); err != nil {
			return err
		}
	}
	return nil
}

// atlas are the numbers of places.
type atlas map[place]int64

// readScopes reads scopes by lists of what they consist of.
func (p *phrases) readScopes() string {
	return "SELECT no, workspace_id, scope, scope_id FROM memory_scopes WHERE " + p.in("workspace_id", "$1") + " AND " + p.in("scope", "$2") + " AND " + p.in("scope_id", "$3")
}

// look looks places up. Those that nothing was ever put in have no number.
func (tx txn) look(ctx context.Context, places []place) (atlas, error) {
	var workspaces, scopes, ids []string
	for _, p := range places {
		workspaces, scopes, ids = append(workspaces, p.workspace), append(scopes, string(p.scope)), append(ids, p.id)
	}
	numbers := make(atlas, len(places))
	if len(places) == 0 {
		return numbers, nil
	}
	args := []any{distinct(tx.phrase, workspaces), distinct(tx.phrase, scopes), distinct(tx.phrase, ids)}
	err := tx.each(ctx, tx.phrase.readScopes(), args, func(rows *sql.Rows) error {
		var no int64
		var p place
		if err := rows.Scan(&no, &p.workspace, &p.scope, &p.id); err != nil {
			return err
		}
		numbers[p] = no // also of some that nobody asked for
		return nil
	})
	return numbers, err
}

// distinct is a list as an argument, each text once.
func distinct(p *phrases, list []string) any {
	slices.Sort(list)
	return listOf(p, slices.Compact(list))
}

// settle gives numbers to the places that items are put in, and to all under which
// these stand in the index.
func (tx txn) settle(ctx context.Context, places []place) (atlas, error) {
	var all []place
	for _, p := range places {
		all = append(append(all, home(p.workspace)), p.shelves()...)
	}
	slices.SortFunc(all, comparePlaces)
	all = slices.Compact(all)
	numbers, err := tx.look(ctx, all)
	if err != nil || len(numbers.of(all)) == len(all) {
		return numbers, err
	}
	for _, p := range all {
		if numbers[p] != 0 {
			continue
		}
		_, err := tx.exec(ctx, "INSERT INTO memory_scopes (workspace_id, scope, scope_id) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
			p.workspace, string(p.scope), p.id)
		if err != nil {
			return nil, err
		}
	}
	if numbers, err = tx.look(ctx, all); err == nil && len(numbers.of(all)) < len(all) {
		err = sqldb.Failf(sqldb.CodeInternal, "", "a scope that was made is not there")
	}
	return numbers, err
}

// of returns the numbers of those places that have one.
func (a atlas) of(places []place) []int64 {
	var list []int64
	for _, p := range places {
		if no := a[p]; no != 0 {
			list = append(list, no)
		}
	}
	return list
}

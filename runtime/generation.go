package runtime

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/engine/answers"
	"github.com/grapnelhq/grapnel/internal/engine/merge"
	"github.com/grapnelhq/grapnel/internal/engine/plan"
	"github.com/grapnelhq/grapnel/internal/engine/pool"
	"github.com/grapnelhq/grapnel/internal/engine/supervise"
	"github.com/grapnelhq/grapnel/internal/engine/turnstate"
	"github.com/grapnelhq/grapnel/internal/text/suggest"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

type generation struct {
	number    uint64
	cfg       *config.Config
	instances []*pool.Instance
	byName    map[string]*pool.Instance
	pool      *pool.Pool
	// head is what the generation's records begin with, and grants the hashes of the plugins' grants, in order.
	head   manifest.Head
	grants []string
	// key keys hashes and fingerprints; empty leaves them plain.
	key   []byte
	tools turnstate.HostTools
	// known are the rows of the plugins as they were last.
	known atomic.Pointer[pluginRows]
	// planned is replaced when a plugin describes itself for the first time later.
	planned atomic.Pointer[planned]
	// dropped is set when the generation no longer hears of invalidations: its turns get no cached answers then.
	dropped atomic.Bool
	// planning serializes plans: the last one knows most.
	planning sync.Mutex

	mu    sync.Mutex
	users int
	// retired is set when another generation is in force; idle is closed when the last user has gone after that.
	retired bool
	idle    chan struct{}
}

// pluginRows are the rows of a generation's plugins, and the diagnostics about them, as of a revision of the pool.
// They are shared and must not be changed.
type pluginRows struct {
	revision uint64
	rows     []phases.PluginRow
	notes    []phases.Diagnostic
}

type planned struct {
	plan        *plan.Plan
	diagnostics []phases.Diagnostic
	phases      map[phases.Phase]*plannedPhase
	// hooks holds the hooks of all phases, by subscription.
	hooks map[string]*hook
	// descriptions are those that the plan was made of, by instance; nil where there was none. refused are those that
	// could not be planned.
	descriptions, refused []*phases.Description
}

// plannedPhase is the plan of one phase, with what its dispatches begin with. Its lists are in the order of Expected.
type plannedPhase struct {
	*plan.Phase
	hooks []*hook
	// runs are the rows of the ledger before anything has happened.
	runs []phases.Run
	// notes are the planner's diagnostics about the phase's subscriptions, with a fail_open mark for each guard that
	// is off for want of a grant; unguarded are the events of these marks.
	notes     []phases.Diagnostic
	unguarded []Event
	// turnNeeded is why the phase cannot be dispatched without a turn; nil if it can.
	turnNeeded *phases.Error
	// unknown are the plugins that have not described themselves and may judge in the phase.
	unknown []*pool.Instance
}

type hook struct {
	in      *pool.Instance
	breaker *supervise.Breaker
	answers *answers.Cache
	tags    []string
	merge   merge.Hook
	sight   phases.Sight
	// vary is what its answers depend on; nil if they are not cached.
	vary *answers.Vary
}

// rows makes the rows again only when one may have changed: most dispatches find all as it was.
func (g *generation) rows() *pluginRows {
	revision := g.pool.Revision()
	if known := g.known.Load(); known != nil && known.revision == revision {
		return known
	}
	p := &pluginRows{revision: revision, rows: make([]phases.PluginRow, len(g.instances))}
	for i, in := range g.instances {
		row := &p.rows[i]
		*row = in.Row(g.number)
		row.GrantHash = g.grants[i]
		if row.State != phases.PluginReady {
			p.notes = append(p.notes, phases.Diagnostic{
				Code: cmp.Or(row.Code, string(phases.CauseUnavailable)), Severity: phases.SeverityWarning, Plugin: row.Plugin,
				Message: strings.TrimSuffix("the plugin "+row.Plugin+" is "+string(row.State)+": "+row.Message, ": "), Detail: row.Detail,
			})
		}
		if note, ok := pool.SandboxNote(row); ok {
			p.notes = append(p.notes, note)
		}
	}
	g.known.Store(p)
	return p
}

// hashLabels completes a record, and replaces its texts where the operator wants that.
func (g *generation) hashLabels(m *manifest.Manifest) {
	m.Complete()
	if g.cfg.Manifest.Labels == "hash" {
		*m = manifest.HashLabels(*m, g.key)
	}
}

// outside is the state of a dispatch or call outside of a turn.
func (g *generation) outside() *turnstate.State {
	s := turnstate.Outside(g.cfg.Budgets.Turn, g.key)
	g.setKept(s)
	return s
}

// setKept tells a new state what texts the operator wants kept.
func (g *generation) setKept(s *turnstate.State) {
	s.KeepTexts, s.KeepInputs = g.cfg.Manifest.KeepText, g.cfg.Manifest.KeepInputs == "calls"
}

func (g *generation) undeclared(name string) string {
	return fmt.Sprintf("no plugin %q is declared%s", name, suggest.DidYouMean(name, slices.Sorted(maps.Keys(g.byName))))
}

func (g *generation) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.retired && g.users == 0 {
		return false
	}
	g.users++
	return true
}

func (g *generation) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.users--
	if g.retired && g.users == 0 {
		close(g.idle)
	}
}

// phaseOf returns the plan of a phase. It waits, until the given time, for the first start of plugins that have not described
// themselves and may judge in the phase.
func (g *generation) phaseOf(ctx context.Context, name phases.Phase, until time.Time) *plannedPhase {
	phase := g.planned.Load().phases[name]
	if len(phase.unknown) == 0 {
		return phase
	}
	for _, in := range phase.unknown {
		if in.Status().Failures > 0 {
			continue
		}
		if inc, _ := in.Await(ctx, until, false); inc != nil {
			inc.Leave()
		}
	}
	return g.planned.Load().phases[name]
}

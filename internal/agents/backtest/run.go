package backtest

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/bridge"
	"github.com/grapnelhq/grapnel/internal/facts/secret"
)

// Options say how files are judged.
type Options struct {
	// Engine judges. Against, if it is not nil, judged before: only what they decide differently is reported.
	Engine, Against bridge.Engine
	// Calls, if it is not nil, gets each call with a function that returns it as rows do, from several goroutines: then there
	// is no Engine, and nothing is judged.
	Calls func(call *agent.Event, line func() string)
	// Since is the beginning of the period, and Dir the directory of the sessions; both may be empty.
	Since time.Time
	Dir   string
	Now   func() time.Time
	// Kept has the tallies of earlier runs; nil has none.
	Kept *Kept
	// Progress is kept up to date; it may not be nil.
	Progress *Progress
}

// Progress is how far a run is.
type Progress struct {
	Calls, Files, Bytes, FromBefore atomic.Int64
	AllFiles, AllBytes              atomic.Int64 // 0 until the run begins
}

// Pace is how far a run is, and how fast.
type Pace struct {
	Calls    int64   `json:"calls"     jsonschema:"judged so far, also by an earlier run"`
	Rate     int64   `json:"rate"      jsonschema:"calls a second"`
	Files    int64   `json:"files"     jsonschema:"read to their end"`
	AllFiles int64   `json:"all_files"`
	LeftMS   float64 `json:"left_ms"   jsonschema:"an estimate; 0 if there is none yet"`
}

// Pace returns how far a run is that began so long ago.
func (p *Progress) Pace(since time.Duration) Pace {
	pace := Pace{Calls: p.Calls.Load(), Files: p.Files.Load(), AllFiles: p.AllFiles.Load()}
	pace.Rate = int64(float64(pace.Calls) / max(since.Seconds(), 0.001))
	if bytes := p.Bytes.Load(); bytes > 0 {
		pace.LeftMS = since.Seconds() * 1000 * float64(p.AllBytes.Load()-bytes) / float64(bytes)
	}
	return pace
}

// ballast, which nothing touches, lets the heap grow to twice as much before it is collected.
const ballast = 32 << 20

// Run judges files until ctx ends, each in its order and several at once, and returns what it has judged by then.
func Run(ctx context.Context, files []File, o Options) *Tally {
	r := &run{Options: o, files: files, scanner: secret.New(), total: newTally()}
	for i := range files {
		o.Progress.AllBytes.Add(files[i].Size)
	}
	o.Progress.AllFiles.Store(int64(len(files)))
	defer runtime.KeepAlive(make([]byte, ballast))
	workers := runtime.GOMAXPROCS(0)
	if o.Engine != nil {
		workers *= 8 // plugins then take and answer several messages at a time
	}
	var working sync.WaitGroup
	for range workers {
		working.Go(func() { r.work(ctx) })
	}
	working.Wait()
	r.total.Partial = ctx.Err() != nil
	r.total.bound()
	return r.total
}

type run struct {
	Options

	files   []File
	next    atomic.Int64
	scanner *secret.Scanner

	mu    sync.Mutex
	total *Tally
}

// work judges files until there are no more.
func (r *run) work(ctx context.Context) {
	for ctx.Err() == nil {
		i := r.next.Add(1) - 1
		if i >= int64(len(r.files)) {
			return
		}
		f := &r.files[i]
		t := r.Kept.get(f, r.Since)
		if t != nil {
			r.Progress.FromBefore.Add(1)
			r.Progress.Calls.Add(int64(t.sum(calls)))
		} else if t = r.file(ctx, f); ctx.Err() == nil {
			r.Kept.put(f, r.Since, t)
		}
		r.Progress.Files.Add(1)
		r.Progress.Bytes.Add(f.Size)
		r.mu.Lock()
		r.total.add(t)
		r.mu.Unlock()
	}
}

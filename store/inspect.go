package store

import (
	"database/sql"
	"runtime"
	"sync"

	"github.com/grapnelhq/grapnel/manifest"
)

// inspection checks records on all processors, and adds them to a verifier in the order in which they come.
type inspection struct {
	verifier *manifest.Verifier
	// places are a ring: the next record takes the one at next. Those of the records that were not added yet are
	// in front of it.
	places []inspecting
	next   int
	todo   chan *inspecting
	work   sync.WaitGroup
}

// inspecting is a place for one record. Its memory is used again.
type inspecting struct {
	record packedRecord
	// before comes before the record is added.
	before []func()
	taken  bool
	done   chan *manifest.Inspected
}

// ahead is how many records of each processor may be on their way.
const ahead = 8

// inspect returns an inspection whose goroutines end with stop.
func inspect(v *manifest.Verifier) *inspection {
	processors := runtime.GOMAXPROCS(0)
	in := &inspection{verifier: v, places: make([]inspecting, ahead*processors), todo: make(chan *inspecting, ahead*processors)}
	for i := range in.places {
		in.places[i].done = make(chan *manifest.Inspected, 1)
		in.places[i].record.outline = sql.RawBytes{} // one that is empty is not taken for none
	}
	for range processors {
		in.work.Go(func() {
			var u unpacker
			for p := range in.todo {
				p.done <- v.Inspect(p.record.unpack(&u))
			}
		})
	}
	return in
}

// stop ends the inspection. Records that were not added are forgotten.
func (in *inspection) stop() {
	close(in.todo)
	in.work.Wait()
}

// then has the verifier do something before the next record is added.
func (in *inspection) then(do func()) {
	p := in.place()
	p.before = append(p.before, do)
}

// add inspects the next record and adds it, sooner or later. It waits while too many are on their way.
func (in *inspection) add(r *packedRecord) {
	p := in.place()
	p.record.copy(r)
	p.taken = true
	in.next = (in.next + 1) % len(in.places)
	in.todo <- p
}

// place returns the place of the next record.
func (in *inspection) place() *inspecting {
	p := &in.places[in.next]
	if p.taken {
		in.finish(p)
	}
	return p
}

func (in *inspection) finish(p *inspecting) {
	for _, do := range p.before {
		do()
	}
	p.before = p.before[:0]
	if p.taken {
		in.verifier.Add(<-p.done)
		p.taken = false
	}
}

// finishAll waits until all records were added.
func (in *inspection) finishAll() {
	in.place() // the oldest record, if there is one in all of them; then the next has only what comes behind all records
	for i := range in.places {
		in.finish(&in.places[(in.next+1+i)%len(in.places)])
	}
}

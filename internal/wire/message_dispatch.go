package wire

import (
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/grapnelhq/grapnel/phases"
)

// These functions are the messages of plugin.proto: same numbers, same order. See form for how they work.

// dispatchFields is Dispatch. The incarnation is in the frame.
func dispatchFields(f *form, m *phases.Dispatch) {
	f.texts(1, &m.Subscription, &m.Hook, (*string)(&m.Phase))
	sub(f, 4, &m.Context, contextFields)
	list(f, 5, &m.Withheld)
	each(f, 6, &m.Policies, policyEntryFields)
	each(f, 7, &m.Contexts, contextEntryFields)
	number(f, 8, &m.Attempt)
	f.text(9, &m.IdempotencyKey)
	sub(f, 10, &m.Trace, traceFields)
	sub(f, 11, &m.Budget, answerBudgetFields)
	remaining(f, 12, &m.Remaining)
	number(f, 13, &m.Generation)
	inputFields(f, &m.Input)
}

func toolCallFields(f *form, m *phases.ToolCall) {
	f.text(1, &m.Tool)
	f.raw(2, &m.Arguments)
	sub(f, 3, &m.Context, contextFields)
	f.text(4, &m.IdempotencyKey)
	sub(f, 5, &m.Trace, traceFields)
	sub(f, 6, &m.Budget, answerBudgetFields)
	remaining(f, 7, &m.Remaining)
	number(f, 8, &m.Generation)
	each(f, 9, &m.Policies, policyEntryFields)
	f.flag(10, &m.OutsideTurn)
}

// remaining is the time that is left, bounded by what the caller will wait.
func remaining(f *form, n fieldNumber, p *time.Duration) {
	if f.writing && f.most > 0 && (*p <= 0 || *p > f.most) {
		p = &f.most
	}
	number(f, n, p)
}

type fieldNumber = protowire.Number

// choice is one member of a oneof, an interface I that *T implements. The last one wins; the same one is merged.
func choice[T, I any](f *form, n fieldNumber, p *I, fields func(*form, *T)) {
	if f.writing {
		if v, ok := any(*p).(*T); ok {
			put(f, n, v, fields)
		}
		return
	}
	if !f.has(n) {
		return
	}
	v, ok := any(*p).(*T)
	if !ok {
		v = new(T)
	}
	take(f, v, fields)
	*p, _ = any(v).(I)
}

// completeInput fills in what a sender may omit: an empty input, and the phase of a custom one.
func completeInput(d *phases.Dispatch, table *phases.Table) {
	if in, ok := d.Input.(*phases.CustomInput); ok {
		in.Name = d.Phase
	}
	if d.Input != nil {
		return
	}
	if row, ok := table.Lookup(d.Phase); ok {
		d.Input = row.NewInput()
	} else if strings.HasPrefix(string(d.Phase), "x.") {
		d.Input = &phases.CustomInput{Name: d.Phase}
	}
}

func textFields(f *form, m *phases.Text) {
	if f.writing {
		if m.Withheld {
			f.putNumber(2, uint64(m.Chars)) //nolint:gosec // two's complement is the encoding
		} else {
			f.text(1, &m.Value)
		}
		return
	}
	if f.has(1) {
		*m = phases.Text{Value: f.takeText()}
	}
	if f.hasNumber(2) {
		*m = phases.Text{Withheld: true, Chars: int(f.u)} //nolint:gosec // likewise
		f.next()
	}
}

package wire

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
)

// Bounds against messages that are small on the wire and large in memory.
const (
	maxMessages = 64 << 10 // the most nested messages in one frame
	// From largeFrame on, short strings are copied instead of keeping the whole frame's text alive.
	largeFrame  = 16 << 10
	shortString = 256
)

// form is a message that is being written or read. The function of a message names its fields once, in the order of
// their numbers, by calls such as f.text(1, &m.Kind).
//
// Writing, each call appends the field unless it is empty. Reading, each call takes the field if it is the one at
// hand and moves on to the next; the function runs again until nothing is left, and a field that no call takes is
// unknown. Fields in order are thus read in one pass, without tables or reflection. The first error ends all work.
type form struct {
	writing  bool
	rule     textRule // what text must be. With repair, writing replaces what breaks it and counts in repaired.
	repair   bool
	repaired int
	most     time.Duration // most, unless 0, bounds the remaining time that a call carries

	out          []byte       // what was written
	buffer       *[]byte      // where out began
	contribution contribution // the one at hand; they are never nested

	in       string // reading: the rest of the message behind the field at hand
	num      protowire.Number
	typ      protowire.Type
	u        uint64 // the field at hand, a number
	s        string // the field at hand, bytes
	steps    int    // counts fields, to notice one that was not taken
	messages int
	large    bool

	err  error
	path []protowire.Number // where err is, innermost first
}

func (f *form) failf(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, args...)
		f.path = append(f.path, f.num)
	}
	f.num, f.in = 0, ""
}

// problem returns the error with the path of field numbers.
func (f *form) problem() error {
	if f.err == nil {
		return nil
	}
	var where strings.Builder
	for _, n := range slices.Backward(f.path) {
		if n != 0 {
			fmt.Fprintf(&where, ".%d", n)
		}
	}
	if where.Len() == 0 {
		return f.err
	}
	return fmt.Errorf("field %s: %w", where.String()[1:], f.err)
}

// read reads a message. Unless its bytes are the message's own, one copy of them holds all its strings.
func read[T any](f *form, data []byte, owned bool, m *T, fields func(*form, *T)) error {
	f.large = len(data) >= largeFrame
	if owned {
		within(f, unsafe.String(unsafe.SliceData(data), len(data)), m, fields) //nolint:gosec // never written again
	} else {
		within(f, string(data), m, fields)
	}
	return f.problem()
}

// within reads the message s, then continues where it was.
func within[T any](f *form, s string, m *T, fields func(*form, *T)) {
	if f.messages++; f.messages > maxMessages {
		f.failf("more than %d messages in one frame", maxMessages)
		return
	}
	num, rest := f.num, f.in
	f.in = s
	for f.next(); f.num != 0; {
		step := f.steps
		if fields(f, m); f.steps == step {
			f.next()
		}
	}
	f.in = rest
	if f.err != nil {
		f.path = append(f.path, num)
	}
}

// next moves to the next field; num is 0 at the end.
func (f *form) next() {
	f.steps++
	if f.err != nil || f.in == "" {
		f.num = 0
		return
	}
	in := unsafe.Slice(unsafe.StringData(f.in), len(f.in)) //nolint:gosec // only read
	num, typ, n := protowire.ConsumeTag(in)
	if n < 0 {
		f.failf("no field tag where one must be")
		return
	}
	in, f.in = in[n:], f.in[n:]
	f.num, f.typ = num, typ
	switch typ {
	case protowire.VarintType:
		f.u, n = protowire.ConsumeVarint(in)
	case protowire.Fixed64Type:
		f.u, n = protowire.ConsumeFixed64(in)
	case protowire.Fixed32Type:
		_, n = protowire.ConsumeFixed32(in) // no message has one
	case protowire.BytesType:
		var s []byte
		if s, n = protowire.ConsumeBytes(in); n >= 0 {
			f.s = f.in[n-len(s) : n]
		}
	default:
		n = -1 // this version of protobuf has no groups
	}
	if n < 0 {
		f.failf("field is cut short or of an unknown wire type")
		return
	}
	f.in = f.in[n:]
}

func (f *form) has(n protowire.Number) bool { return f.num == n && f.typ == protowire.BytesType }

func (f *form) hasNumber(n protowire.Number) bool {
	return f.num == n && f.typ == protowire.VarintType
}

// text is a string field. Named types are passed as (*string)(&m.Word).
func (f *form) text(n protowire.Number, p *string) {
	if f.writing {
		if *p != "" {
			f.putText(n, *p)
		}
	} else if f.has(n) {
		*p = f.takeText()
	}
}

// texts are string fields with consecutive numbers from n on.
func (f *form) texts(n protowire.Number, list ...*string) {
	for _, p := range list {
		f.text(n, p)
		n++
	}
}

func (f *form) putText(n protowire.Number, s string) {
	if !f.rule.holds(s) {
		if !f.repair {
			f.num = n
			f.failf("text is %s", f.rule.broken(s))
			return
		}
		s = f.rule.repaired(s)
		f.repaired++
	}
	f.out = protowire.AppendTag(f.out, n, protowire.BytesType)
	f.out = protowire.AppendString(f.out, s)
}

func (f *form) takeText() string {
	s := f.s
	if !f.rule.holds(s) {
		f.failf("text is %s", f.rule.broken(s))
		return ""
	}
	if f.large && len(s) < shortString {
		s = strings.Clone(s)
	}
	f.next()
	return s
}

func (f *form) raw(n protowire.Number, p *json.RawMessage) {
	switch {
	case f.writing && len(*p) > 0:
		raw := *p
		if !f.rule.holdsJSON(raw) {
			if !f.repair {
				f.num = n
				f.failf("embedded JSON holds text that is not UTF-8 without NUL")
				return
			}
			raw = f.rule.repairedJSON(raw)
			f.repaired++
		}
		f.out = protowire.AppendTag(f.out, n, protowire.BytesType)
		f.out = protowire.AppendBytes(f.out, raw)
	case !f.writing && f.has(n):
		*p = nil
		if f.s != "" {
			*p = json.RawMessage(f.s)
		}
		if !f.rule.holdsJSON(*p) {
			f.failf("embedded JSON holds text that is not allowed")
			return
		}
		f.next()
	}
}

func (f *form) flag(n protowire.Number, p *bool) {
	if f.writing {
		if *p {
			f.putNumber(n, 1)
		}
	} else if f.hasNumber(n) {
		*p = f.u != 0
		f.next()
	}
}

// number is an integer field; negative numbers take ten bytes.
func number[T ~int | ~int64 | ~uint64](f *form, n protowire.Number, p *T) {
	if f.writing {
		if *p != 0 {
			f.putNumber(n, uint64(*p))
		}
	} else if f.hasNumber(n) {
		*p = T(f.u)
		f.next()
	}
}

func (f *form) putNumber(n protowire.Number, v uint64) {
	f.out = protowire.AppendTag(f.out, n, protowire.VarintType)
	f.out = protowire.AppendVarint(f.out, v)
}

func (f *form) double(n protowire.Number, p *float64) {
	if f.writing {
		if bits := math.Float64bits(*p); bits != 0 {
			f.out = protowire.AppendTag(f.out, n, protowire.Fixed64Type)
			f.out = protowire.AppendFixed64(f.out, bits)
		}
	} else if f.num == n && f.typ == protowire.Fixed64Type {
		*p = math.Float64frombits(f.u)
		f.next()
	}
}

// instant is a time in RFC 3339 with its offset.
func (f *form) instant(n protowire.Number, p *time.Time) {
	if f.writing {
		if !p.IsZero() {
			f.putInstant(n, *p)
		}
	} else if f.has(n) {
		t, err := time.Parse(time.RFC3339Nano, f.s)
		if err != nil && f.s != "" {
			f.failf("text is not a time (RFC 3339)")
			return
		}
		*p = t
		f.next()
	}
}

func (f *form) putInstant(n protowire.Number, t time.Time) {
	// RFC 3339 has no seconds in an offset, and years of four digits.
	if _, offset := t.Zone(); offset%60 != 0 {
		t = t.UTC()
	}
	if y := t.Year(); y < 0 || y > 9999 {
		f.num = n
		f.failf("the year %d cannot be sent", y)
		return
	}
	f.out = protowire.AppendTag(f.out, n, protowire.BytesType)
	mark := f.open()
	f.out = t.AppendFormat(f.out, time.RFC3339Nano)
	f.close(mark)
}

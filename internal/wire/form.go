package wire

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Bounds of what is decoded, against messages that are small on the wire and
// large in memory.
const (
	// maxMessages is the most nested messages in one frame.
	maxMessages = 64 << 10
	// largeFrame is the size from which short strings are copied out of the
	// frame's text instead of keeping all of it alive.
	largeFrame  = 16 << 10
	shortString = 256
)

// form is a message that is being written or read. The function of a message
// names its fields once, in the order of their numbers, by calls such as
//
//	f.text(1, &m.Kind)
//	f.text(2, &m.ID)
//
// Writing, each call appends the field unless it is empty. Reading, each call
// takes the field if it is the one at hand, and the form moves on to the next;
// the function runs again until nothing is left, and what no call takes is an
// unknown field. Fields in order are thus read in one pass, without tables or
// reflection, and no field can be known to one direction only.
//
// The first error ends all work; see err.
type form struct {
	writing bool
	// rule is what text must be; repair makes writing replace what is not.
	rule   textRule
	repair bool
	// repaired counts the replaced texts.
	repaired int
	// most bounds the remaining time that a call is told; 0 does not.
	most time.Duration

	out    []byte  // what was written
	buffer *[]byte // where out began
	// contribution is the one at hand; they are never nested.
	contribution contribution

	in       string // reading: the rest of the message behind the field at hand
	num      protowire.Number
	typ      protowire.Type
	u        uint64 // the field at hand, a number
	s        string // the field at hand, bytes
	steps    int    // counts fields, to notice that nobody took one
	messages int
	large    bool

	err  error
	path []protowire.Number // where err is, innermost first
}

// failf notes the first error and stops.
func (f *form) failf(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, args...)
		f.path = append(f.path, f.num)
	}
	f.num, f.in = 0, ""
}

// problem returns the error with the numbers of the fields that lead to it.
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

// read decodes a whole message into m.
func read[T any](f *form, data []byte, m *T, fields func(*form, *T)) error {
	f.large = len(data) >= largeFrame
	// One copy holds all strings of the message: data goes back to a pool.
	within(f, string(data), m, fields)
	return f.problem()
}

// within reads a message that is s, then stands again where it was.
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

// next moves to the next field of the message; num is 0 at its end.
func (f *form) next() {
	f.steps++
	if f.err != nil || f.in == "" {
		f.num = 0
		return
	}
	tag, n := uvarint(f.in)
	num := tag >> 3
	if n == 0 || num == 0 || num > uint64(protowire.MaxValidNumber) {
		f.failf("no field tag where one must be")
		return
	}
	f.in = f.in[n:]
	f.num, f.typ = protowire.Number(num), protowire.Type(tag&7)
	switch f.typ {
	case protowire.VarintType:
		f.u, n = uvarint(f.in)
	case protowire.Fixed64Type:
		f.u, n = fixed(f.in, 8)
	case protowire.Fixed32Type:
		f.u, n = fixed(f.in, 4)
	case protowire.BytesType:
		f.s, n = lengthDelimited(f.in)
	default:
		n = 0 // groups are no part of this version of protobuf
	}
	if n == 0 {
		f.failf("field is cut short or of an unknown wire type")
		return
	}
	f.in = f.in[n:]
}

// uvarint reads a varint; the length is 0 where there is none.
func uvarint(s string) (uint64, int) {
	var v uint64
	for i := 0; i < len(s) && i < 10; i++ {
		b := s[i]
		if i == 9 && b > 1 {
			return 0, 0
		}
		v |= uint64(b&0x7f) << (7 * i)
		if b < 0x80 {
			return v, i + 1
		}
	}
	return 0, 0
}

func fixed(s string, size int) (uint64, int) {
	if len(s) < size {
		return 0, 0
	}
	var v uint64
	for i := range size {
		v |= uint64(s[i]) << (8 * i)
	}
	return v, size
}

func lengthDelimited(s string) (string, int) {
	size, n := uvarint(s)
	if n == 0 || size > uint64(len(s)-n) { //nolint:gosec // n is at most len(s)
		return "", 0
	}
	end := n + int(size) //nolint:gosec // bounded by len(s)
	return s[n:end], end
}

// has reports whether the field at hand is n, as bytes.
func (f *form) has(n protowire.Number) bool { return f.num == n && f.typ == protowire.BytesType }

// hasNumber reports whether the field at hand is n, as a varint.
func (f *form) hasNumber(n protowire.Number) bool {
	return f.num == n && f.typ == protowire.VarintType
}

// text is a string field. Typed words are passed as (*string)(&m.Word).
func (f *form) text(n protowire.Number, p *string) {
	if f.writing {
		if *p != "" {
			f.putText(n, *p)
		}
	} else if f.has(n) {
		*p = f.takeText()
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

// raw is a field of embedded JSON.
func (f *form) raw(n protowire.Number, p *json.RawMessage) {
	if f.writing {
		if len(*p) > 0 {
			f.putRaw(n, *p)
		}
	} else if f.has(n) {
		*p = f.takeRaw()
	}
}

func (f *form) putRaw(n protowire.Number, raw []byte) {
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
}

func (f *form) takeRaw() json.RawMessage {
	var raw json.RawMessage
	if f.s != "" {
		raw = json.RawMessage(f.s)
	}
	if !f.rule.holdsJSON(raw) {
		f.failf("embedded JSON holds text that is not allowed")
		return nil
	}
	f.next()
	return raw
}

// flag is a bool field.
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

// number is an integer field of any signedness; negative ones take ten bytes.
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

// double is a field of a floating-point number.
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

// instant is a time, RFC 3339 with its offset.
func (f *form) instant(n protowire.Number, p *time.Time) {
	if f.writing {
		if !p.IsZero() {
			f.putInstant(n, *p)
		}
	} else if f.has(n) {
		t, err := time.Parse(time.RFC3339Nano, f.s)
		if err != nil && f.s != "" {
			f.failf("text is no time (RFC 3339)")
			return
		}
		*p = t
		f.next()
	}
}

func (f *form) putInstant(n protowire.Number, t time.Time) {
	// The text form has no seconds in an offset, and years of four digits.
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

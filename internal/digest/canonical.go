package digest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
)

// MaxDepth is how deep JSON text may be nested.
const MaxDepth = 256

var (
	errInvalidUTF8 = errors.New("string is not valid UTF-8")
	errNotFinite   = errors.New("number is not finite")
)

// JSON appends the canonical form of the JSON text raw to dst. It refuses what the package comment lists, and
// anything beside the one JSON value but blanks. On an error dst is returned unchanged.
func JSON(dst, raw []byte) ([]byte, error) {
	out, _, err := appendJSON(dst, raw)
	if err != nil {
		return dst, fmt.Errorf("canonical JSON: %w", err)
	}
	return out, nil
}

// appendJSON is JSON; replaced reports whether raw has U+FFFD as an escape.
func appendJSON(dst, raw []byte) (out []byte, replaced bool, err error) {
	if !utf8.Valid(raw) {
		return dst, false, errInvalidUTF8
	}
	w := writers.Get().(*writer) //nolint:forcetypeassert // the pool has nothing else
	defer writers.Put(w)
	w.Scanner, w.out, w.replaced = jsonscan.Scanner{Text: raw, MaxDepth: MaxDepth}, dst, false
	if err = w.value(0); err == nil {
		err = w.End()
	}
	out = w.out
	w.Text, w.out = nil, nil
	return out, w.replaced, err
}

//nolint:gochecknoglobals // a pool
var writers = sync.Pool{New: func() any { return &writer{} }}

// writer copies JSON text in canonical form.
type writer struct {
	jsonscan.Scanner
	out      []byte
	replaced bool
	members  []member // a stack: those of an object lie above those of its container
	spare    []byte   // to sort members in
}

// member has the places of its quoted name in the text, and of what was written in out.
type member struct{ name, nameEnd, from, to int }

// name returns a member's name without quotes and escapes.
func (w *writer) name(m member) []byte {
	quoted := w.Text[m.name:m.nameEnd]
	if bytes.IndexByte(quoted, '\\') >= 0 {
		return []byte(jsonscan.Unquote(quoted))
	}
	return quoted[1 : len(quoted)-1]
}

func (w *writer) value(depth int) error {
	switch c := w.Next(); {
	case c == '{':
		return w.object(depth)
	case c == '[':
		return w.array(depth)
	case c == '"':
		return w.text()
	case c == '-' || c >= '0' && c <= '9':
		return w.number()
	default:
		from := w.Pos
		err := w.Value(depth)
		w.out = append(w.out, w.Text[from:w.Pos]...)
		return err
	}
}

func (w *writer) array(depth int) error {
	w.out = append(w.out, '[')
	n := 0
	err := w.Elements(depth, func() error {
		if n > 0 {
			w.out = append(w.out, ',')
		}
		if err := w.value(depth + 1); err != nil {
			return fmt.Errorf("[%d]: %w", n, err)
		}
		n++
		return nil
	})
	w.out = append(w.out, ']')
	return err
}

func (w *writer) object(depth int) error {
	begin, first, sorted := len(w.out), len(w.members), true
	w.out = append(w.out, '{')
	err := w.Members(depth, func(from, to int) error {
		if len(w.members) > first {
			w.out = append(w.out, ',')
		}
		m := member{name: from, nameEnd: to, from: len(w.out)}
		if err := w.escaped(w.Text[from:to]); err != nil {
			return fmt.Errorf("member name: %w", err)
		}
		w.out = append(w.out, ':')
		if err := w.value(depth + 1); err != nil {
			return fmt.Errorf("%q: %w", w.name(m), err)
		}
		m.to = len(w.out)
		sorted = sorted && (len(w.members) == first || compareUTF16(w.name(w.members[len(w.members)-1]), w.name(m)) < 0)
		w.members = append(w.members, m)
		return nil
	})
	if err == nil && !sorted {
		err = w.sort(begin+1, w.members[first:])
	}
	w.members = w.members[:first]
	w.out = append(w.out, '}')
	return err
}

// sort puts the members in order, which are the end of out.
func (w *writer) sort(begin int, members []member) error {
	slices.SortFunc(members, func(a, b member) int { return compareUTF16(w.name(a), w.name(b)) })
	w.spare = append(w.spare[:0], w.out[begin:]...)
	w.out = w.out[:begin]
	for i, m := range members {
		if i > 0 {
			if bytes.Equal(w.name(members[i-1]), w.name(m)) {
				return fmt.Errorf("duplicate name %q", w.name(m))
			}
			w.out = append(w.out, ',')
		}
		w.out = append(w.out, w.spare[m.from-begin:m.to-begin]...)
	}
	return nil
}

func (w *writer) text() error {
	from := w.Pos
	if err := w.String(); err != nil {
		return err
	}
	return w.escaped(w.Text[from:w.Pos])
}

// escaped writes a string that was scanned, with the escapes of RFC 8785 section
// 3.2.2.2 and no others.
func (w *writer) escaped(quoted []byte) error {
	done := 0
	for i := 0; i < len(quoted); i++ {
		if quoted[i] != '\\' {
			continue
		}
		i++
		switch quoted[i] {
		case '/':
			w.out = append(w.out, quoted[done:i-1]...)
			done = i
		case 'u':
			end := i + 5
			half := (quoted[i+1]|0x20) == 'd' && quoted[i+2] >= '8' // a surrogate
			if half {
				end = min(end+6, len(quoted)-1)
			}
			w.out = append(w.out, quoted[done:i-1]...)
			s := jsonscan.Unquote(append(append([]byte{'"'}, quoted[i-1:end]...), '"'))
			if half && (s == "\ufffd" || utf8.RuneCountInString(s) != 1) {
				return errors.New("lone surrogate")
			}
			w.replaced = w.replaced || s == "\ufffd"
			w.out = appendEscaped(w.out, s)
			done, i = end, end-1
		}
	}
	w.out = append(w.out, quoted[done:]...)
	return nil
}

// controls are the letters that stand for the control characters from the backspace on.
const controls = "btn_fr"

func appendEscaped(dst []byte, s string) []byte {
	switch c := s[0]; {
	case c == '"' || c == '\\':
		return append(dst, '\\', c)
	case c >= ' ':
		return append(dst, s...)
	case c >= '\b' && c <= '\r' && c != '\v':
		return append(dst, '\\', controls[c-'\b'])
	default:
		const digits = "0123456789abcdef"
		return append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&0xf])
	}
}

// exactDigits is how many digits an integer can have and be a double for sure.
const exactDigits = 15

// number writes a number as ECMAScript prints the double.
func (w *writer) number() error {
	from := w.Pos
	if err := w.Number(); err != nil {
		return err
	}
	n := w.Text[from:w.Pos]
	if len(n) <= exactDigits && isInteger(n) {
		w.out = append(w.out, n...)
		return nil
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil {
		return fmt.Errorf("%w: %.40s", errNotFinite, n)
	}
	w.out = appendFloat(w.out, f)
	return nil
}

func isInteger(n []byte) bool {
	for i, c := range n {
		if c < '0' && (i > 0 || c != '-') || c > '9' {
			return false
		}
	}
	return string(n) != "-0"
}

// appendFloat is Number.prototype.toString of ECMAScript for a finite number: shortest digits, exponents only outside
// [1e-6, 1e21) and without a leading zero, no negative zero.
func appendFloat(dst []byte, f float64) []byte {
	if f == 0 {
		return append(dst, '0')
	}
	if abs := math.Abs(f); abs >= 1e-6 && abs < 1e21 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	dst = strconv.AppendFloat(dst, f, 'e', -1, 64)
	// Go pads the exponent to two digits: 1e-07 becomes 1e-7.
	if n := len(dst); dst[n-2] == '0' && (dst[n-3] == '-' || dst[n-3] == '+') {
		dst[n-2] = dst[n-1]
		dst = dst[:n-1]
	}
	return dst
}

// compareUTF16 orders valid UTF-8 by UTF-16 code units, as RFC 8785 section
// 3.2.3 sorts members. That is byte order but for one case: characters beyond
// the basic plane (lead byte 0xf0 and up) are surrogates in UTF-16 and so come
// before U+E000 to U+FFFF (lead bytes 0xee and 0xef).
func compareUTF16(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		if x >= 0xee && y >= 0xee && (x >= 0xf0) != (y >= 0xf0) {
			return cmp.Compare(y, x)
		}
		return cmp.Compare(x, y)
	}
	return cmp.Compare(len(a), len(b))
}

package config

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
)

// maxNumber bounds the digits of a number, and maxExponent the digits of its
// exponent: decoders of JSON may need memory in proportion to them.
const (
	maxNumber   = 400
	maxExponent = 3
)

var (
	decimal   = lazyregexp.New(`^([-+]?)([0-9]*)(\.[0-9]*)?([eE][-+]?([0-9]+))?$`)
	otherBase = lazyregexp.New(`^0(x[0-9a-fA-F]+|o[0-7]+)$`)
	special   = lazyregexp.New(`^([-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
)

// resolve gives a scalar without quotes its kind by the core schema of YAML 1.2. Numbers come back as JSON writes
// them, with all their digits. A problem is why the scalar is refused.
func resolve(text string) (kind nodeKind, value, problem string) {
	switch text {
	case "", "~", "null", "Null", "NULL":
		return nullNode, "", ""
	case "true", "True", "TRUE":
		return boolNode, "true", ""
	case "false", "False", "FALSE":
		return boolNode, "false", ""
	}
	if special().MatchString(text) {
		return numberNode, "0", text + " is not a number in JSON"
	}
	if otherBase().MatchString(text) && len(text) <= maxNumber {
		n, _ := new(big.Int).SetString(text, 0)
		return numberNode, n.String(), ""
	}
	part := decimal().FindStringSubmatch(text)
	if part == nil || part[2] == "" && len(part[3]) < 2 {
		return textNode, text, ""
	}
	sign, whole, fraction, exponent := part[1], part[2], part[3], part[4]
	switch {
	case len(text) > maxNumber || len(part[5]) > maxExponent:
		return numberNode, "0", "the number is too long"
	case len(whole) > 1 && whole[0] == '0':
		return numberNode, "0", text + " begins with 0, which some programs read as octal; write 0o for octal, remove the 0, or put it in quotes"
	case whole == "":
		whole = "0"
	}
	if fraction == "." {
		fraction = ".0"
	}
	return numberNode, strings.TrimPrefix(sign, "+") + whole + fraction + exponent, ""
}

// Size is a number of bytes. Its text form carries a unit: "256MiB", "4KiB",
// "512B". KB, MB and GB count in thousands.
type Size int64

//nolint:gochecknoglobals // a table; B is last, because the other names end in it
var units = []struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1}}

// String returns the shortest exact form with a binary unit.
func (s Size) String() string {
	for _, u := range units {
		if binary := strings.HasSuffix(u.name, "iB"); binary && s != 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// MarshalText implements encoding.TextMarshaler.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. A number without a unit is an error.
func (s *Size) UnmarshalText(text []byte) error {
	for _, u := range units {
		digits, ok := strings.CutSuffix(string(text), u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || int64(n) > math.MaxInt64/u.bytes {
			break
		}
		*s = Size(int64(n) * u.bytes)
		return nil
	}
	return fmt.Errorf("%.80q is not a size; write a whole number with a unit, such as 512B, 64KiB or 256MiB", text)
}

package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is a number of bytes. Its text form carries a unit: "256MiB", "4KiB",
// "512B". KB, MB and GB count in thousands.
type Size int64

// unit is a suffix of sizes.
type unit struct {
	name  string
	bytes int64
}

// units lists the largest binary units first; B is the last, because the others
// end in it.
func units() []unit {
	return []unit{
		{"GiB", 1 << 30},
		{"MiB", 1 << 20},
		{"KiB", 1 << 10},
		{"GB", 1e9},
		{"MB", 1e6},
		{"KB", 1e3},
		{"B", 1},
	}
}

// String returns the shortest exact form with a binary unit.
func (s Size) String() string {
	for _, u := range units() {
		if binary := strings.HasSuffix(u.name, "iB"); binary && s != 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// MarshalText implements encoding.TextMarshaler.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. A number without a unit is
// an error.
func (s *Size) UnmarshalText(text []byte) error {
	for _, u := range units() {
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

package digest

import (
	"fmt"

	"github.com/gowebpki/jcs"
)

// MaxDepth is how many arrays and objects may contain one another in anything
// that this package encodes. It is far above what contributions may nest (the
// boundary of a plugin refuses 33) and far below what a stack can bear.
const MaxDepth = 256

// JSON appends the canonical form of the JSON text raw to dst. It refuses what
// the package comment lists, and text that is not exactly one JSON value with
// optional blanks around it. On an error dst is returned unchanged.
//
// Text that is canonical already costs one pass and no allocation.
func JSON(dst, raw []byte) ([]byte, error) {
	if isCanonical(raw) {
		return append(dst, raw...), nil
	}
	// Depth is checked before anything recurses into raw.
	if err := CheckDepth(raw, MaxDepth); err != nil {
		return dst, err
	}
	if raw == nil {
		raw = []byte{} // the same error as for any other empty text
	}
	out, err := jcs.Transform(raw)
	if err != nil {
		return dst, fmt.Errorf("canonical JSON: %w", err)
	}
	return append(dst, out...), nil
}

// Depth returns the deepest nesting of arrays and objects in raw: 0 for a
// scalar, 1 for [] or {}. It is one linear pass and does not recurse. For text
// that is not JSON it is an upper bound of how deep a parser could get.
func Depth(raw []byte) int {
	deepest, _ := scanDepth(raw, len(raw))
	return deepest
}

// CheckDepth returns an error that wraps [ErrTooDeep] when raw nests deeper
// than limit. It stops at the bracket that goes too far.
func CheckDepth(raw []byte, limit int) error {
	if _, ok := scanDepth(raw, limit); !ok {
		return fmt.Errorf("%w: more than %d levels", ErrTooDeep, limit)
	}
	return nil
}

// scanDepth returns the deepest nesting, and false as soon as it passes limit.
func scanDepth(raw []byte, limit int) (int, bool) {
	depth, deepest := 0, 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = skipString(raw, i+1)
		case '[', '{':
			depth++
			deepest = max(deepest, depth)
			if depth > limit {
				return deepest, false
			}
		case ']', '}':
			depth = max(depth-1, 0)
		}
	}
	return deepest, true
}

// skipString returns the index of the quote that closes the string whose
// contents begin at i, or len(raw).
func skipString(raw []byte, i int) int {
	for i < len(raw) && raw[i] != '"' {
		if raw[i] == '\\' {
			i++
		}
		i++
	}
	return i
}

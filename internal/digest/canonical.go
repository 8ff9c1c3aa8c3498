package digest

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
)

// MaxDepth is how deep JSON text may be nested.
const MaxDepth = 256

var (
	errInvalidUTF8 = errors.New("string is not valid UTF-8")
	errNotFinite   = errors.New("number is not finite")
)

//nolint:gochecknoglobals // immutable
var canonical = json.JoinOptions(jsontext.CanonicalizeRawInts(true), jsontext.CanonicalizeRawFloats(true), jsontext.ReorderRawObjects(true))

// largest is what jsontext writes for the largest number, and for any number beyond it.
const largest = "1.7976931348623157e+308"

// JSON appends the canonical form of the JSON text raw to dst. It refuses what the package comment lists, and
// anything beside the one JSON value but blanks. On an error dst is returned unchanged.
func JSON(dst, raw []byte) ([]byte, error) {
	if jsonscan.Depth(raw) > MaxDepth {
		return dst, fmt.Errorf("canonical JSON: %w", jsonscan.ErrTooDeep)
	}
	out, err := jsontext.AppendFormat(dst, raw, canonical)
	if err == nil && bytes.Contains(out[len(dst):], []byte(largest)) {
		err = json.Unmarshal(raw, new(any)) // refuses numbers beyond
	}
	if err != nil {
		return dst, fmt.Errorf("canonical JSON: %w", err)
	}
	return out, nil
}

// AppendString appends s as a canonical JSON string. It refuses what is not UTF-8.
func AppendString(dst []byte, s string) ([]byte, error) {
	if !utf8.ValidString(s) {
		return dst, errInvalidUTF8
	}
	return jsontext.AppendQuote(dst, s)
}

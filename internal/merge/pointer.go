package merge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/phases"
)

// appendToken is the pointer token for the place behind an array's last
// element.
const appendToken = "-"

// ApplyRewrites returns doc with the rewrites applied one after the other. It is
// used between transform hooks and for the merged result; the runtime hands the
// outcome on instead of doc, which is not changed.
//
// A path is a JSON pointer (RFC 6901). "" replaces the whole document. An
// existing member or element is replaced; a member that is not there is added; an
// array takes its length, or "-", as "append". What lies between must exist, and
// be an object or array. An absent doc counts as an empty object. Numbers keep
// their digits; members come out sorted by name, as encoding/json sorts them.
//
// A rewrite that does not apply, or makes the document deeper than
// [phases.MaxJSONDepth], is a *phases.Error with CauseInvalidReply that carries
// the rewrite's owner as Subscription; then nothing is applied.
func ApplyRewrites(doc json.RawMessage, rewrites []phases.MergedRewrite) (json.RawMessage, error) {
	if len(rewrites) == 0 {
		return doc, nil
	}
	var root any = map[string]any{}
	if len(doc) > 0 {
		var err error
		if root, err = decodeAny(doc); err != nil {
			return nil, fmt.Errorf("document: %w", err)
		}
	}
	for i := range rewrites {
		r := &rewrites[i]
		changed, err := applyOne(root, r)
		if err != nil {
			return nil, &phases.Error{
				Code: phases.CauseInvalidReply, Subscription: r.Owner,
				Message: "a rewrite cannot be applied to the input", Detail: fmt.Sprintf("rewrite of %.200q: %v", r.Path, err), Err: err,
			}
		}
		root = changed
	}
	return encodeAny(root)
}

// applyOne returns the document with one rewrite applied.
func applyOne(root any, r *phases.MergedRewrite) (any, error) {
	tokens, err := parsePointer(r.Path)
	if err != nil {
		return nil, err
	}
	value, err := decodeAny(r.Value)
	if err != nil {
		return nil, fmt.Errorf("value: %w", err)
	}
	if len(tokens)+depthOf(value) > phases.MaxJSONDepth {
		return nil, fmt.Errorf("would nest deeper than %d", phases.MaxJSONDepth)
	}
	return put(root, tokens, value)
}

// put sets value at the place that tokens name inside node, and returns the
// node that stands there then: arrays may move when they grow.
func put(node any, tokens []string, value any) (any, error) {
	if len(tokens) == 0 {
		return value, nil
	}
	token, rest := tokens[0], tokens[1:]
	switch n := node.(type) {
	case map[string]any:
		child, ok := n[token]
		if !ok && len(rest) > 0 {
			return nil, fmt.Errorf("there is no member %.80q", token)
		}
		changed, err := put(child, rest, value)
		if err != nil {
			return nil, err
		}
		n[token] = changed
		return n, nil
	case []any:
		return putElement(n, token, rest, value)
	}
	return nil, fmt.Errorf("the place above %.80q is neither object nor array", token)
}

// putElement is put for an array.
func putElement(list []any, token string, rest []string, value any) (any, error) {
	i, err := elementIndex(token, len(list))
	if err != nil {
		return nil, err
	}
	if i == len(list) {
		if len(rest) > 0 {
			return nil, fmt.Errorf("there is no element %s", token)
		}
		return append(list, value), nil
	}
	changed, err := put(list[i], rest, value)
	if err != nil {
		return nil, err
	}
	list[i] = changed
	return list, nil
}

// elementIndex reads an array index as RFC 6901 writes it: digits without a
// leading zero, or "-".
func elementIndex(token string, length int) (int, error) {
	if token == appendToken {
		return length, nil
	}
	i, err := strconv.Atoi(token)
	if err != nil || token != strconv.Itoa(i) || i < 0 {
		return 0, fmt.Errorf("%.80q is not an index of an array", token)
	}
	if i > length {
		return 0, fmt.Errorf("index %d is behind the end of %d elements", i, length)
	}
	return i, nil
}

// parsePointer splits a JSON pointer into unescaped tokens. One that is deeper
// than a document may be can never apply and is refused.
func parsePointer(path string) ([]string, error) {
	if path == "" {
		return nil, nil
	}
	if path[0] != '/' {
		return nil, errors.New("is not a JSON pointer: it begins with /")
	}
	if !utf8.ValidString(path) {
		return nil, errors.New("is not valid UTF-8")
	}
	if strings.Count(path, "/") > phases.MaxJSONDepth {
		return nil, fmt.Errorf("is deeper than %d", phases.MaxJSONDepth)
	}
	tokens := strings.Split(path[1:], "/")
	for i, t := range tokens {
		unescaped, err := unescapeToken(t)
		if err != nil {
			return nil, err
		}
		tokens[i] = unescaped
	}
	return tokens, nil
}

// unescapeToken turns ~1 into / and ~0 into ~; another ~ is an error.
func unescapeToken(t string) (string, error) {
	for rest := t; ; {
		_, after, found := strings.Cut(rest, "~")
		if !found {
			break
		}
		if after == "" || after[0] != '0' && after[0] != '1' {
			return "", errors.New("is not a JSON pointer: ~ must be followed by 0 or 1")
		}
		rest = after[1:]
	}
	return strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~"), nil
}

// decodeAny reads a checked document, keeping numbers as they are spelled.
func decodeAny(raw []byte) (any, error) {
	if err := phases.CheckJSON(raw, phases.MaxJSONDepth); err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	return v, nil
}

// encodeAny writes JSON without escaping HTML: tool arguments are commands and
// paths, and people compare them.
func encodeAny(v any) (json.RawMessage, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// depthOf counts the nesting of arrays and objects; CheckJSON has bounded it.
func depthOf(v any) int {
	deepest := 0
	switch v := v.(type) {
	case map[string]any:
		for _, child := range v {
			deepest = max(deepest, depthOf(child))
		}
	case []any:
		for _, child := range v {
			deepest = max(deepest, depthOf(child))
		}
	default:
		return 0
	}
	return deepest + 1
}

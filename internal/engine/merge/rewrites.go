package merge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/phases"
)

type rewriteClaim = claim[*phases.Rewrite]

// rewrites keeps rewrites in plan order, several on one path too: a later one sees what an earlier one did. At equal
// priorities only one may write a path, and no other subscription above or below it. Appending to an array never
// conflicts.
func (m *merger) rewrites() {
	list := claims[*phases.Rewrite](m, nil)
	if len(list) == 0 {
		return
	}
	taken := writes{at: map[place]*item{}, below: map[place]*item{}}
	for _, c := range list {
		if other := taken.holder(c); other != nil {
			m.lose(c.item, c.id(), string(phases.CauseConflict), 0)
			m.conflict(c.item, other.hook.Subscription, shownPath(c.value.Path), "path")
			continue
		}
		taken.add(c)
		m.out.Merged.Rewrites = append(m.out.Merged.Rewrites, phases.MergedRewrite{
			Path: c.value.Path, Value: c.value.Value, Owner: c.hook.Subscription,
		})
	}
}

// place is a path at one pair of priorities; only equal pairs conflict.
type place struct {
	path              string
	hookPrio, ownPrio int
}

type writes struct {
	at map[place]*item
	// below has the first writer below a path. A subscription's rewrites stand together in plan order, so if that one
	// is its own, there is no other.
	below map[place]*item
}

func (w writes) holder(c rewriteClaim) *item {
	p := place{c.value.Path, c.hook.Priority, c.priority()}
	if it := w.at[p]; it != nil && !appends(p.path) {
		return it
	}
	sub := c.hook.Subscription
	for parent, ok := above(p.path); ok; parent, ok = above(parent) {
		if it := w.at[place{parent, p.hookPrio, p.ownPrio}]; it != nil && it.hook.Subscription != sub {
			return it
		}
	}
	if it := w.below[p]; it != nil && it.hook.Subscription != sub {
		return it
	}
	return nil
}

func (w writes) add(c rewriteClaim) {
	p := place{c.value.Path, c.hook.Priority, c.priority()}
	if w.at[p] == nil {
		w.at[p] = c.item
	}
	for parent, ok := above(p.path); ok; parent, ok = above(parent) {
		key := place{parent, p.hookPrio, p.ownPrio}
		if w.below[key] == nil {
			w.below[key] = c.item
		}
	}
}

func above(path string) (string, bool) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", false
	}
	return path[:i], true
}

func appends(path string) bool { return strings.HasSuffix(path, "/"+appendToken) }

// shownPath hides a path that could be a sentence of the plugin from a diagnostic.
func shownPath(path string) string {
	if path == "" || phases.ValidID(path[1:]) {
		return path
	}
	return "(a path)"
}

const appendToken = "-"

// ApplyRewrites returns doc with the rewrites applied in order; doc is not changed.
//
// A path is a JSON pointer (RFC 6901); "" replaces the whole document. An existing value is replaced, a missing
// member added, and an array takes its length, or "-", as "append". The values above must exist. An absent doc is an
// empty object. Numbers keep their digits; members are sorted by name.
//
// A rewrite that does not apply, or nests deeper than [phases.MaxJSONDepth], is a *phases.Error with
// CauseInvalidReply and the rewrite's owner as Subscription.
func ApplyRewrites(doc json.RawMessage, rewrites []phases.MergedRewrite) (json.RawMessage, error) {
	if len(rewrites) == 0 {
		return doc, nil
	}
	var root any = map[string]any{}
	if len(doc) > 0 {
		var err error
		if root, err = decodeAny(doc, phases.MaxJSONDepth); err != nil {
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

func applyOne(root any, r *phases.MergedRewrite) (any, error) {
	tokens, err := parsePointer(r.Path)
	if err != nil {
		return nil, err
	}
	value, err := decodeAny(r.Value, phases.MaxJSONDepth-len(tokens))
	if err != nil {
		return nil, fmt.Errorf("value: %w", err)
	}
	return put(root, tokens, value)
}

// put sets the value that tokens name inside node, and returns the new node: arrays may move when they grow.
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

// elementIndex parses an array index: digits without a leading zero, or "-".
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

// parsePointer splits a JSON pointer into unescaped tokens, at most as many as a document may be deep.
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
		if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(t), "~") {
			return nil, errors.New("is not a JSON pointer: ~ must be followed by 0 or 1")
		}
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(t, "~1", "/"), "~0", "~")
	}
	return tokens, nil
}

func decodeAny(raw []byte, depth int) (any, error) {
	if err := jsonscan.Check(raw, depth); err != nil {
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

// encodeAny does not escape HTML: tool arguments are commands and paths.
func encodeAny(v any) (json.RawMessage, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

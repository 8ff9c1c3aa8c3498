// Package answers caches what hooks have answered, so that the same question need not be asked twice.
// [Vary.AppendKey] names what an answer depends on; a [Cache] keeps the answers of one subscription.
//
// Stability: internal.
package answers

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/grapnelhq/grapnel/internal/engine/merge"
	"github.com/grapnelhq/grapnel/internal/engine/turnstate"
	"github.com/grapnelhq/grapnel/internal/recent"
	"github.com/grapnelhq/grapnel/phases"
)

// Bounds of the answers of one subscription.
const (
	maxAnswers = 256
	maxBytes   = 4 << 20
)

// Cache holds the answers of one subscription. One is used again while all that it depends on is the same, until it
// expires, is invalidated, or the plugin is restarted. It is safe for concurrent use.
type Cache struct {
	mu sync.Mutex
	// epoch is raised by Invalidate: answers to earlier questions are not kept.
	epoch uint64
	kept  recent.Map[*Answer]
	bytes int
}

// New returns an empty cache.
func New() *Cache { return &Cache{kept: recent.New[*Answer](maxAnswers)} }

// Answer is what a hook answered, as it was admitted. It does not change.
type Answer struct {
	Entries []merge.Entry
	Notes   []phases.Diagnostic
	// Run names the run that gave it, Incarnation the process.
	Run         string
	Incarnation uint64
	// Until is when it expires; zero for never.
	Until time.Time

	bytes int
}

// Get returns the answer that the running incarnation gave to a key, or nil, and the epoch under which a new one may
// be kept.
func (c *Cache) Get(key []byte, incarnation uint64) (*Answer, uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found, ok := c.kept.Lookup(key)
	if !ok || found.Incarnation != incarnation || !found.Until.IsZero() && time.Now().After(found.Until) {
		return nil, c.epoch
	}
	return found, c.epoch
}

// Put keeps an answer, unless the cache was invalidated after the epoch. The oldest answers are evicted.
func (c *Cache) Put(key string, epoch uint64, a *Answer) {
	a.bytes = len(key)
	for i := range a.Entries {
		a.bytes += a.Entries[i].Size()
	}
	for i := range a.Notes {
		a.bytes += turnstate.NoteBytes(&a.Notes[i])
	}
	c.put(key, epoch, a)
}

func (c *Cache) put(key string, epoch uint64, a *Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if epoch != c.epoch || a.bytes > maxBytes/4 {
		return
	}
	if before, ok := c.kept.Get(key); ok {
		c.bytes -= before.bytes
		c.kept.Drop(key)
	}
	for c.kept.Len() > 0 && (c.bytes+a.bytes > maxBytes || c.kept.Len() >= maxAnswers) {
		oldest, _ := c.kept.Evict("")
		c.bytes -= oldest.bytes
	}
	c.kept.Put("", key, a)
	c.bytes += a.bytes
}

// Invalidate forgets all answers, and those to questions that are being asked.
func (c *Cache) Invalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.epoch++
	c.kept, c.bytes = recent.New[*Answer](maxAnswers), 0
}

// Question is what an answer may depend on.
type Question struct {
	Context *phases.Context
	Input   phases.Input
	// Session numbers the beginnings, resumptions and ends of the session: what was answered before one is not used behind it.
	Session uint64
	// Chars is the text budget of the answer.
	Chars int
	// Policies and Contexts are the sets that the hook may see, as JSON.
	Policies, Contexts string
}

// Vary says what the answers of one subscription depend on, beside what every key holds.
type Vary struct{ context, input []field }

// field is a field of a struct by its index, which is -1 for the input of a host's own phase, and by its name in
// JSON.
type field struct {
	index int
	name  string
}

// NewVary resolves the names of the fields that the answers of a phase's hook vary with.
func NewVary(row phases.Row, names []string) *Vary {
	v := &Vary{}
	for _, name := range names {
		if of, isInput := strings.CutPrefix(name, "input."); isInput {
			v.input = append(v.input, fieldOf(reflect.TypeOf(row.NewInput()).Elem(), of))
		} else if name != "actor" { // is in every key
			v.context = append(v.context, fieldOf(reflect.TypeFor[phases.Context](), name))
		}
	}
	return v
}

func fieldOf(form reflect.Type, name string) field {
	for i := range form.NumField() {
		if named, _, _ := strings.Cut(form.Field(i).Tag.Get("json"), ","); named == name {
			return field{i, name}
		}
	}
	return field{-1, name}
}

// AppendKey appends a key of all that the answer to a question may depend on. The keys of one subscription have the
// same parts, each with its length before it, so that different questions have different keys.
func (v *Vary) AppendKey(dst []byte, q Question) []byte {
	dst = appendPart(dst, q.Context.WorkspaceID)
	dst = appendPart(dst, q.Context.Actor.Kind)
	dst = appendPart(dst, q.Context.Actor.ID)
	dst = strconv.AppendInt(dst, int64(q.Chars), 10)
	dst = strconv.AppendUint(append(dst, ';'), q.Session, 10)
	dst = appendPart(appendPart(append(dst, ';'), q.Policies), q.Contexts)
	for _, f := range v.context {
		switch {
		case f.name == "conversation_thread_id":
			dst = appendPart(dst, q.Context.Conversation())
		case f.index < 0: // all fields, so that no answer is wrong
			dst = appendPart(dst, JSON(q.Context))
		default:
			dst = appendField(dst, reflect.ValueOf(q.Context).Elem().Field(f.index))
		}
	}
	for _, f := range v.input {
		if custom, ok := q.Input.(*phases.CustomInput); ok {
			var fields map[string]json.RawMessage
			if err := json.Unmarshal(custom.Fields, &fields); err != nil {
				fields = nil // no fields: anything else was refused
			}
			dst = appendPart(dst, fields[f.name])
			continue
		}
		dst = appendField(dst, reflect.ValueOf(q.Input).Elem().Field(f.index))
	}
	return dst
}

func appendPart[T ~string | ~[]byte](dst []byte, part T) []byte {
	dst = append(strconv.AppendInt(dst, int64(len(part)), 10), ':')
	return append(dst, part...)
}

// appendField appends a value exactly as it was given: values that a hook could tell apart must not have one key.
func appendField(dst []byte, v reflect.Value) []byte {
	switch v.Kind() { //nolint:exhaustive // others as JSON
	case reflect.String:
		return appendPart(dst, v.String())
	case reflect.Int:
		return append(strconv.AppendInt(dst, v.Int(), 10), ';')
	case reflect.Bool:
		return strconv.AppendBool(dst, v.Bool())
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return appendPart(dst, v.Bytes())
		}
	}
	return appendPart(dst, JSON(v.Addr().Interface()))
}

// JSON returns a value as JSON for a key.
func JSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%#v", v) // not for inputs, and never equal to JSON
	}
	return string(b)
}

package runtime

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/grapnelhq/grapnel/internal/plan"
	"github.com/grapnelhq/grapnel/phases"
)

// keyRoom is a key's room on the stack; longer ones need memory of their own.
const keyRoom = 256

// varying says what the answers of one subscription depend on, beside what every
// key holds. It is made with the plan, so that a key costs no search for fields.
type varying struct {
	// context are fields of the context by JSON name, inputs those of the input.
	context []string
	inputs  []inputField
}

// inputField is a field of a phase's input: by its place in the struct, and by
// its name in the object that the input of a host's own phase is.
type inputField struct {
	place int
	name  string
}

// newVarying resolves the names of a cached subscription; nil if its answers are
// not kept.
func newVarying(row phases.Row, sub *plan.Subscription) *varying {
	if sub.Cache == nil || sub.Shadow || sub.Undescribed {
		return nil
	}
	v := &varying{}
	form := reflect.TypeOf(row.NewInput()).Elem()
	for _, name := range sub.Cache.Vary {
		field, isInput := strings.CutPrefix(name, "input.")
		if !isInput {
			v.context = append(v.context, name)
			continue
		}
		v.inputs = append(v.inputs, inputField{placeOf(form, field), field})
	}
	return v
}

// placeOf is the index of the field with a name in JSON; -1 if there is none,
// as in the input of a host's own phase.
func placeOf(form reflect.Type, name string) int {
	for i := range form.NumField() {
		if named, _, _ := strings.Cut(form.Field(i).Tag.Get("json"), ","); named == name {
			return i
		}
	}
	return -1
}

// appendKey appends what names everything that the answer to a call may depend
// on: always the workspace, the actor, the room for text and the sets that the
// plugin may see, and what the subscription says it varies with. The keys of one
// subscription have the same parts, each with its length before it, so that no
// two lists of parts give one key.
func (d *dispatch) appendKey(dst []byte, c *call) []byte {
	ctx := &d.rq.context
	dst = appendPart(dst, ctx.WorkspaceID)
	dst = appendPart(dst, ctx.Actor.Kind)
	dst = appendPart(dst, ctx.Actor.ID)
	dst = appendNumber(dst, d.room(c))
	if c.hook.sight.Policy {
		dst = appendPart(dst, d.policyKey())
	}
	if c.hook.sight.Context {
		dst = appendPart(dst, d.contextKey())
	}
	for _, name := range c.hook.varying.context {
		dst = appendContext(dst, ctx, name)
	}
	for _, field := range c.hook.varying.inputs {
		dst = appendInput(dst, d.input, field)
	}
	return dst
}

// sharedKeys are the parts that the keys of several hooks of a dispatch have in
// common and that take some work. Hooks are looked up one after the other, before
// anything of the dispatch changes the sets, so it needs no lock.
type sharedKeys struct{ policies, contexts string }

func (d *dispatch) policyKey() string {
	if d.keys.policies == "" {
		d.keys.policies = asJSON(d.policies)
	}
	return d.keys.policies
}

func (d *dispatch) contextKey() string {
	if d.keys.contexts == "" {
		d.keys.contexts = asJSON(d.contexts)
	}
	return d.keys.contexts
}

// appendPart appends one part of a key.
func appendPart[T ~string | ~[]byte](dst []byte, part T) []byte {
	dst = strconv.AppendInt(dst, int64(len(part)), 10)
	dst = append(dst, ':')
	return append(dst, part...)
}

func appendNumber(dst []byte, n int) []byte {
	return append(strconv.AppendInt(dst, int64(n), 10), ';')
}

// appendContext appends a field of the context. The names are those that
// phases.ValidateHook takes.
func appendContext(dst []byte, c *phases.Context, name string) []byte {
	switch name {
	case "workspace_id":
		return appendPart(dst, c.WorkspaceID)
	case "thread_id":
		return appendPart(dst, c.ThreadID)
	case "conversation_thread_id":
		return appendPart(dst, c.Conversation())
	case "turn_id":
		return appendPart(dst, c.TurnID)
	case "task_id":
		return appendPart(dst, c.TaskID)
	case "agent_id":
		return appendPart(dst, c.AgentID)
	case "session_id":
		return appendPart(dst, c.SessionID)
	case "parent_session_id":
		return appendPart(dst, c.ParentSessionID)
	case "epoch":
		return appendNumber(dst, c.Epoch)
	case "mode":
		return appendPart(dst, string(c.Mode))
	case "profile":
		return appendPart(dst, string(c.Profile))
	case "dir":
		return appendPart(dst, c.Dir)
	case "dir_root":
		return appendPart(dst, c.DirRoot)
	case "actor":
		return dst // is in every key
	case "flags":
		return appendPart(dst, asJSON(c.Flags))
	case "metadata":
		return appendPart(dst, asJSON(c.Metadata))
	}
	return appendPart(dst, asJSON(c)) // a field that this does not know: all of them, so that no answer is wrong
}

// appendInput appends a field of the input as exactly as it was given: two
// inputs that a hook could tell apart must not have one key.
func appendInput(dst []byte, in phases.Input, field inputField) []byte {
	if custom, ok := in.(*phases.CustomInput); ok {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(custom.Fields, &fields); err != nil {
			return appendPart(dst, custom.Fields) // empty: anything else was refused
		}
		return appendPart(dst, fields[field.name])
	}
	switch v := reflect.ValueOf(in).Elem().Field(field.place).Addr().Interface().(type) {
	case *string:
		return appendPart(dst, *v)
	case *int:
		return appendNumber(dst, *v)
	case *bool:
		return strconv.AppendBool(dst, *v)
	case *json.RawMessage:
		return appendPart(dst, *v)
	default:
		return appendPart(dst, asJSON(v))
	}
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%#v", v) // never equal to JSON, and never an error for inputs
	}
	return string(b)
}

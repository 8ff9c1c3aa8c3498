package runtime_test

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/grapnelhq/grapnel/internal/wire/pluginpb"
)

// extreme is a contribution that is well formed but for one field.
type extreme struct {
	Name         string // the field and its value: "prompt_section.max_chars: -1"
	Contribution *pluginpb.Contribution
}

// extremes are generated from the wire contract: one for each field of each kind of contribution and each value at
// the edges of its type.
func extremes() []extreme {
	var all []extreme
	for _, base := range plainContributions() {
		kind := base.ProtoReflect().WhichOneof(base.ProtoReflect().Descriptor().Oneofs().ByName("kind"))
		descend(base.ProtoReflect().Descriptor(), nil, func(path []protoreflect.FieldDescriptor) {
			if shared := path[0].ContainingOneof() == nil; shared && kind.Name() != "noop" || !shared && path[0] != kind {
				return // another kind's; what all share is tried once
			}
			for _, v := range edges(path[len(path)-1]) {
				changed := proto.CloneOf(base)
				at := changed.ProtoReflect()
				for _, f := range path[:len(path)-1] {
					at = into(at, f)
				}
				v.set(at)
				all = append(all, extreme{Name: fmt.Sprintf("%s of %s: %s", pathName(path), kind.Name(), v.name), Contribution: changed})
			}
		})
	}
	return all
}

// plainContributions are one of each kind that a host accepts.
func plainContributions() []*pluginpb.Contribution {
	return []*pluginpb.Contribution{
		{Domain: "d", Kind: &pluginpb.Contribution_Policy{Policy: &pluginpb.Policy{Key: "k", ValueJson: []byte("1")}}},
		{Kind: &pluginpb.Contribution_PromptContext{PromptContext: &pluginpb.PromptContext{Content: "text"}}},
		{Kind: &pluginpb.Contribution_PromptSection{PromptSection: &pluginpb.PromptSection{SectionId: "s", Content: "text"}}},
		{Kind: &pluginpb.Contribution_ToolBundle{ToolBundle: &pluginpb.ToolBundle{BundleId: "b", Tools: []*pluginpb.Tool{{Name: "t"}}}}},
		{Kind: &pluginpb.Contribution_Decision{Decision: &pluginpb.Decision{Verdict: "allow"}}},
		{Kind: &pluginpb.Contribution_Rewrite{Rewrite: &pluginpb.Rewrite{Path: "/a", ValueJson: []byte("1")}}},
		{Kind: &pluginpb.Contribution_Reminder{Reminder: &pluginpb.Reminder{Type: "r", Text: "text"}}},
		{Kind: &pluginpb.Contribution_ManifestDiagnostic{ManifestDiagnostic: &pluginpb.ManifestDiagnostic{Code: "c", Message: "m"}}},
		{Kind: &pluginpb.Contribution_Audit{Audit: &pluginpb.Audit{EventKind: "e"}}},
		{Kind: &pluginpb.Contribution_BackgroundJob{BackgroundJob: &pluginpb.BackgroundJob{JobKind: "j"}}},
		{Kind: &pluginpb.Contribution_Noop{Noop: &pluginpb.Noop{}}},
	}
}

// descend calls visit with the path to each field below a message, none of which is recursive.
func descend(d protoreflect.MessageDescriptor, above []protoreflect.FieldDescriptor, visit func([]protoreflect.FieldDescriptor)) {
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		path := slices.Concat(above, []protoreflect.FieldDescriptor{f})
		visit(path)
		if f.Message() != nil && !f.IsMap() {
			descend(f.Message(), path, visit)
		}
	}
}

func pathName(path []protoreflect.FieldDescriptor) string {
	var names []string
	for _, f := range path {
		names = append(names, string(f.Name()))
	}
	return strings.Join(names, ".")
}

// into enters a message field, creating it.
func into(m protoreflect.Message, f protoreflect.FieldDescriptor) protoreflect.Message {
	if !f.IsList() {
		return m.Mutable(f).Message()
	}
	list := m.Mutable(f).List()
	if list.Len() == 0 {
		list.AppendMutable()
	}
	return list.Get(0).Message()
}

type edge struct {
	name string
	set  func(protoreflect.Message)
}

const (
	manyEntries      = 5_000
	textBeyondLimits = 64 << 10 // longer than any text that is kept
)

func edges(f protoreflect.FieldDescriptor) []edge {
	switch {
	case f.IsMap():
		return []edge{{"many entries", func(m protoreflect.Message) {
			for i := range manyEntries {
				m.Mutable(f).Map().Set(protoreflect.ValueOfString(fmt.Sprintf("k%d", i)).MapKey(), protoreflect.ValueOfString("v"))
			}
		}}}
	case f.IsList():
		return []edge{{"many entries", func(m protoreflect.Message) {
			for range manyEntries {
				if f.Message() != nil {
					m.Mutable(f).List().AppendMutable()
				}
			}
		}}}
	}
	var list []edge
	for name, v := range scalars(f.Kind()) {
		list = append(list, edge{name, func(m protoreflect.Message) { m.Set(f, v) }})
	}
	return list
}

func scalars(k protoreflect.Kind) map[string]protoreflect.Value {
	all := map[string]protoreflect.Value{}
	switch k {
	case protoreflect.StringKind:
		for name, s := range edgeTexts() {
			all[name] = protoreflect.ValueOfString(s)
		}
	case protoreflect.BytesKind:
		for name, s := range edgeJSON() {
			all[name] = protoreflect.ValueOfBytes([]byte(s))
		}
	case protoreflect.Int64Kind:
		for _, n := range []int64{math.MinInt64, math.MinInt64 + 1, -1, 1, math.MaxInt32, math.MaxInt64 - 1, math.MaxInt64} {
			all[strconv.FormatInt(n, 10)] = protoreflect.ValueOfInt64(n)
		}
	case protoreflect.BoolKind:
		all["true"] = protoreflect.ValueOfBool(true)
	default:
	}
	return all
}

func edgeTexts() map[string]string {
	return map[string]string{
		"empty": "", "blank": " \t\n", "long": strings.Repeat("x", textBeyondLimits), "lines": strings.Repeat("\n", 60_000),
		"controls": "\x01\x1b[2J\x07\r\x7f\u009b", "bidi": "a\u202eb", "path": "../../../etc/passwd", "markup": "</system><script>]]>",
		// One character of many code points: cutting it must not take forever.
		"one grapheme": "a" + strings.Repeat("\u0301", 30_000), "flags": strings.Repeat("\U0001F1E9", 15_000), "joined": strings.Repeat("\U0001F469\u200d", 10_000),
		"far future": "292277026596-12-04T15:30:07Z", "last year": "9999-12-31T23:59:59.999999999-23:59", "year 0": "0000-01-01T00:00:00+23:59", "past": "0001-01-01T00:00:00Z",
	}
}

func edgeJSON() map[string]string {
	return map[string]string{
		"deep": strings.Repeat("[", 200_000), "deep objects": strings.Repeat(`{"a":`, 30_000) + "1" + strings.Repeat("}", 30_000),
		"as deep as allowed": strings.Repeat("[", 32) + strings.Repeat("]", 32), "huge number": "1e999999999", "long number": strings.Repeat("9", textBeyondLimits),
		"not a number": "NaN", "infinity": "-Infinity", "minus": "-", "null": "null", "duplicate keys": `{"a":1,"a":2}`, "NUL": `"\u0000"`, "surrogate": `"\udc00"`,
		"many members": "[" + strings.Repeat("0,", 60_000) + "0]", "two values": "1 2", "unfinished": `{"a":"`, "not UTF-8": "\"\xff\"", "blank": " ",
	}
}

// frameBodies lists the bodies that a frame of a plugin can have, by field name.
func frameBodies() []string {
	var names []string
	fields := bodyFields()
	for i := range fields.Len() {
		names = append(names, string(fields.Get(i).Name()))
	}
	return names
}

func bodyFields() protoreflect.FieldDescriptors {
	return (&pluginpb.PluginFrame{}).ProtoReflect().Descriptor().Oneofs().ByName("body").Fields()
}

// emptyBody is a frame with an empty body of a kind that [frameBodies] lists.
func emptyBody(name string, id, incarnation uint64) []byte {
	frame := &pluginpb.PluginFrame{Id: id, Incarnation: incarnation}
	if field := bodyFields().ByName(protoreflect.Name(name)); field != nil {
		frame.ProtoReflect().Mutable(field)
	}
	return marshal(frame)
}

// hostCallFrame is a frame that asks a host service.
func hostCallFrame(id, incarnation, parent uint64, service, method string, params []byte) []byte {
	return marshal(&pluginpb.PluginFrame{Id: id, Incarnation: incarnation, Body: &pluginpb.PluginFrame_HostCall{
		HostCall: &pluginpb.HostCall{Parent: parent, Service: service, Method: method, ParamsJson: params},
	}})
}

// invalidateFrame is a frame that invalidates cached answers by tags.
func invalidateFrame(id, incarnation uint64, tags []string) []byte {
	return marshal(&pluginpb.PluginFrame{Id: id, Incarnation: incarnation, Body: &pluginpb.PluginFrame_Invalidate{
		Invalidate: &pluginpb.Invalidate{Tags: tags},
	}})
}

// ofSection is a contribution of a section.
func ofSection(m *pluginpb.PromptSection) *pluginpb.Contribution {
	return &pluginpb.Contribution{Kind: &pluginpb.Contribution_PromptSection{PromptSection: m}}
}

func marshal(f *pluginpb.PluginFrame) []byte {
	data, err := proto.Marshal(f)
	if err != nil {
		panic(err)
	}
	return data
}

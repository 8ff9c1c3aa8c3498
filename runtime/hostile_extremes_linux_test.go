package runtime_test

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/grapnelhq/grapnel/internal/wire/pluginpb"
)

// extremes are contributions that are well formed but for one field. They are generated from the wire contract: one for
// each field of each kind of contribution and each value at the edges of its type.
func extremes() []*pluginpb.Contribution {
	var all []*pluginpb.Contribution
	for _, base := range plainContributions() {
		kind := base.ProtoReflect().WhichOneof(base.ProtoReflect().Descriptor().Oneofs().ByName("kind"))
		descend(base.ProtoReflect().Descriptor(), nil, func(path []protoreflect.FieldDescriptor) {
			if shared := path[0].ContainingOneof() == nil; shared && kind.Name() != "noop" || !shared && path[0] != kind {
				return // another kind's; what all share is tried once
			}
			last := len(path) - 1
			for _, set := range edges(path[last]) {
				changed := proto.CloneOf(base)
				at := changed.ProtoReflect()
				for _, f := range path[:last] {
					at = into(at, f)
				}
				set(at)
				all = append(all, changed)
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

const (
	manyEntries      = 5_000
	textBeyondLimits = 64 << 10 // longer than any text that is kept
)

// edges set a field to the values at the edges of its type.
func edges(f protoreflect.FieldDescriptor) []func(protoreflect.Message) {
	switch {
	case f.IsMap():
		return []func(protoreflect.Message){func(m protoreflect.Message) {
			for i := range manyEntries {
				m.Mutable(f).Map().Set(protoreflect.ValueOfString(fmt.Sprintf("k%d", i)).MapKey(), protoreflect.ValueOfString("v"))
			}
		}}
	case f.IsList() && f.Message() != nil:
		return []func(protoreflect.Message){func(m protoreflect.Message) {
			for range manyEntries {
				m.Mutable(f).List().AppendMutable()
			}
		}}
	case f.IsList():
		return nil
	}
	var list []func(protoreflect.Message)
	for _, v := range scalars(f.Kind()) {
		list = append(list, func(m protoreflect.Message) { m.Set(f, v) })
	}
	return list
}

func scalars(k protoreflect.Kind) []protoreflect.Value {
	var all []protoreflect.Value
	switch k {
	case protoreflect.StringKind:
		for _, s := range edgeTexts() {
			all = append(all, protoreflect.ValueOfString(s))
		}
	case protoreflect.BytesKind:
		for _, s := range edgeJSON() {
			all = append(all, protoreflect.ValueOfBytes([]byte(s)))
		}
	case protoreflect.Int64Kind:
		for _, n := range []int64{math.MinInt64, -1, 1, math.MaxInt32, math.MaxInt64} {
			all = append(all, protoreflect.ValueOfInt64(n))
		}
	case protoreflect.BoolKind:
		all = append(all, protoreflect.ValueOfBool(true))
	default:
	}
	return all
}

func edgeTexts() []string {
	return []string{
		"", " \t\n", strings.Repeat("x", textBeyondLimits), strings.Repeat("\n", 60_000), "\x01\x1b[2J\x07\r\x7f\u009b", "a\u202eb", "../../../etc/passwd",
		// One character of many code points: cutting it must not take forever.
		"a" + strings.Repeat("\u0301", 30_000), strings.Repeat("\U0001F1E9", 15_000), strings.Repeat("\U0001F469\u200d", 10_000),
		"292277026596-12-04T15:30:07Z", "9999-12-31T23:59:59.999999999-23:59", "0000-01-01T00:00:00+23:59", "0001-01-01T00:00:00Z",
	}
}

func edgeJSON() []string {
	return []string{
		strings.Repeat("[", 200_000), strings.Repeat(`{"a":`, 30_000) + "1" + strings.Repeat("}", 30_000), strings.Repeat("[", 32) + strings.Repeat("]", 32),
		"1e999999999", strings.Repeat("9", textBeyondLimits), "NaN", "null", `{"a":1,"a":2}`, `"\u0000"`, `"\udc00"`,
		"[" + strings.Repeat("0,", 60_000) + "0]", "1 2", `{"a":"`, "\"\xff\"", " ",
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

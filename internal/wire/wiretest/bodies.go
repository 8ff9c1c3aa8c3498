package wiretest

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/grapnelhq/grapnel/internal/wire/pluginpb"
)

// Bodies lists the bodies that a frame of a plugin can have, by field name.
func Bodies() []string {
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

// Body is a frame with an empty body of a kind that [Bodies] lists.
func Body(name string, id, incarnation uint64) []byte {
	frame := &pluginpb.PluginFrame{Id: id, Incarnation: incarnation}
	if field := bodyFields().ByName(protoreflect.Name(name)); field != nil {
		frame.ProtoReflect().Mutable(field)
	}
	return encode(frame)
}

// HostCall is a frame that asks a host service.
func HostCall(id, incarnation, parent uint64, service, method string, params []byte) []byte {
	return encode(&pluginpb.PluginFrame{Id: id, Incarnation: incarnation, Body: &pluginpb.PluginFrame_HostCall{
		HostCall: &pluginpb.HostCall{Parent: parent, Service: service, Method: method, ParamsJson: params},
	}})
}

// Invalidate is a frame that forgets cached answers under tags.
func Invalidate(id, incarnation uint64, tags []string) []byte {
	return encode(&pluginpb.PluginFrame{Id: id, Incarnation: incarnation, Body: &pluginpb.PluginFrame_Invalidate{
		Invalidate: &pluginpb.Invalidate{Tags: tags},
	}})
}

// result is a Result with these contributions.
func result(id, incarnation uint64, all ...*pluginpb.Contribution) []byte {
	return encode(&pluginpb.PluginFrame{Id: id, Incarnation: incarnation, Body: &pluginpb.PluginFrame_Result{
		Result: &pluginpb.Result{Contributions: all},
	}})
}

// encode is proto.Marshal for messages that are ours. Content that is no UTF-8,
// which protobuf refuses, gives nothing.
func encode(f *pluginpb.PluginFrame) []byte {
	data, err := proto.Marshal(f)
	if err != nil {
		return nil
	}
	return data
}

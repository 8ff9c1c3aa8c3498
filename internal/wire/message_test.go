package wire

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/grapnelhq/grapnel/internal/wire/pluginpb"
	"github.com/grapnelhq/grapnel/phases"
)

// encode writes one message without a frame.
func encode[T any](tb testing.TB, m *T, fields func(*form, *T)) []byte {
	tb.Helper()
	f := form{writing: true}
	fields(&f, m)
	if err := f.problem(); err != nil {
		tb.Fatalf("write: %v", err)
	}
	return f.out
}

// decodeAs reads one message.
func decodeAs[T any](tb testing.TB, data []byte, fields func(*form, *T)) *T {
	tb.Helper()
	m := new(T)
	if err := read(&form{rule: ruleClean}, data, false, m, fields); err != nil {
		tb.Fatalf("read: %v", err)
	}
	return m
}

// instants compares times by moment and offset, which is what is sent.
func instants() cmp.Option {
	return cmp.Comparer(func(a, b time.Time) bool {
		_, x := a.Zone()
		_, y := b.Zone()
		return a.Equal(b) && x == y
	})
}

// checkMessage sends m there and back, with our code, through the generated code in
// both directions, and as JSON.
func checkMessage[T any](t *testing.T, m *T, fields func(*form, *T), pb proto.Message, full bool) {
	t.Helper()
	data := encode(t, m, fields)
	opts := cmp.Options{instants(), cmp.AllowUnexported(result{}, toolResult{}, described{}, configured{}, hello{}, hostCall{}, hostReply{}, invalidate{}, unsupported{}), cmpopts.EquateEmpty()}
	if diff := cmp.Diff(m, decodeAs(t, data, fields), opts); diff != "" {
		t.Errorf("there and back (-sent +got):\n%s", diff)
	}
	if err := proto.Unmarshal(data, pb); err != nil {
		t.Fatalf("generated code cannot read it: %v", err)
	}
	if full {
		checkFull(t, pb.ProtoReflect(), string(pb.ProtoReflect().Descriptor().Name()))
	}
	checkJSONForm(t, pb)
	again, err := proto.Marshal(pb)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, decodeAs(t, again, fields), opts); diff != "" {
		t.Errorf("through generated code (-sent +got):\n%s", diff)
	}
}

// checkFull fails for fields of the contract that were not written, and for
// bytes that the contract does not know.
func checkFull(t *testing.T, m protoreflect.Message, path string) {
	t.Helper()
	if len(m.GetUnknown()) > 0 {
		t.Errorf("%s: wrote fields that the contract does not have", path)
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		at := path + "." + string(fd.Name())
		if !m.Has(fd) {
			if fd.ContainingOneof() == nil && fd.Name() != "error" && fd.Name() != "rejected" {
				t.Errorf("%s was not written", at)
			}
			continue
		}
		switch {
		case fd.IsList() && fd.Message() != nil:
			for j := range m.Get(fd).List().Len() {
				checkFull(t, m.Get(fd).List().Get(j).Message(), at)
			}
		case !fd.IsList() && !fd.IsMap() && fd.Message() != nil:
			checkFull(t, m.Get(fd).Message(), at)
		}
	}
}

func TestDispatchMessage(t *testing.T) {
	t.Parallel()
	table, err := phases.NewTable(phases.Custom("x.host.phase", "", 0))
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range table.Rows() {
		t.Run(string(row.Phase), func(t *testing.T) {
			t.Parallel()
			f := newFiller(t, 3)
			var d phases.Dispatch
			f.fill(&d)
			d.Phase, d.Input, d.Incarnation = row.Phase, f.input(row), 0
			fields := func(f *form, m *phases.Dispatch) {
				dispatchFields(f, m)
				if !f.writing {
					completeInput(m, table)
				}
			}
			checkMessage(t, &d, fields, &pluginpb.Dispatch{}, true)
		})
	}
}

func TestResultMessage(t *testing.T) {
	t.Parallel()
	for _, kind := range phases.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			f := newFiller(t, 4)
			m := &result{}
			f.fill(&m.Diagnostics)
			m.Contributions = []phases.Contribution{f.contribution(kind), f.contribution(kind)}
			checkMessage(t, m, resultFields, &pluginpb.Result{}, true)
		})
	}
}

func TestOtherMessages(t *testing.T) {
	t.Parallel()
	f := newFiller(t, 5)
	var d phases.Description
	f.fill(&d)
	var c phases.Configuration
	f.fill(&c)
	var call phases.ToolCall
	f.fill(&call)
	call.Incarnation = 0
	tool := toolResult{}
	f.fill(&tool.ToolResult)
	failure := &phases.Error{Code: phases.CausePluginError, Message: "m", PluginCode: "p", Retryable: true, SafeForUser: true}
	type messages map[string]func(*testing.T)
	for name, check := range (messages{
		"Describe":  message(&described{description: &d, err: failure, lane: true}, describeFields, &pluginpb.Describe{}, true),
		"Configure": message(&c, configureFields, &pluginpb.Configure{}, true),
		"Configured": message(&configured{description: &d, rejected: &phases.ConfigError{Pointer: "/a", Message: "m"}, err: failure},
			configuredFields, &pluginpb.Configured{}, true),
		"CallTool":                 message(&call, toolCallFields, &pluginpb.CallTool{}, true),
		"ToolResult":               message(&tool, toolResultFields, &pluginpb.ToolResult{}, true),
		"ToolResult with an error": message(&toolResult{err: failure}, toolResultFields, &pluginpb.ToolResult{}, false),
		"Result with an error":     message(&result{err: failure}, resultFields, &pluginpb.Result{}, false),
		"Hello":                    message(&hello{1, []string{"a", "b"}, 3, 4, "stdio"}, helloFields, &pluginpb.Hello{}, true),
		"HostCall":                 message(&hostCall{7, "s", "m", raw(`{}`)}, hostCallFields, &pluginpb.HostCall{}, true),
		"HostReply":                message(&hostReply{raw(`{}`), failure}, hostReplyFields, &pluginpb.HostReply{}, true),
		"Invalidate": message(&invalidate{phases.Invalidation{Subscriptions: []string{"a"}, Tags: []string{"b"}}, 7},
			invalidateFields, &pluginpb.Invalidate{}, true),
		"Unsupported": message(&unsupported{12, "n"}, unsupportedFields, &pluginpb.Unsupported{}, true),
	}) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t)
		})
	}
}

// message is a check of one message.
func message[T any](m *T, fields func(*form, *T), pb proto.Message, full bool) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		checkMessage(t, m, fields, pb, full)
	}
}

// TestPointersKeepAbsence tells "not said" from "said to be empty".
func TestPointersKeepAbsence(t *testing.T) {
	t.Parallel()
	no := false
	cases := map[string]phases.Contribution{
		"render not said":     &phases.PromptContext{},
		"render false":        &phases.PromptContext{Render: &no},
		"no frame, no cut":    &phases.PromptSection{},
		"empty frame and cut": &phases.PromptSection{Frame: &phases.Frame{}, Cut: &phases.SelfCut{}},
		"noop":                &phases.Noop{},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &result{Result: phases.Result{Contributions: []phases.Contribution{c}}}
			checkMessage(t, m, resultFields, &pluginpb.Result{}, false)
		})
	}
}

func TestUnknownKindsAreOmitted(t *testing.T) {
	t.Parallel()
	strange := []byte{10, 5, 0xfa, 0x06, 2, 'h', 'i'} // contributions[0] with a field 111
	known := encode(t, &result{Result: phases.Result{Contributions: []phases.Contribution{&phases.Noop{}}}}, resultFields)
	m := decodeAs(t, append(strange, known...), resultFields)
	m.reportUnknown()
	if len(m.Contributions) != 1 || phases.KindOf(m.Contributions[0]) != phases.KindNoop {
		t.Errorf("got %v, want the noop alone", m.Contributions)
	}
	if len(m.Diagnostics) != 1 || m.Diagnostics[0].Code != codeInvalid {
		t.Errorf("got diagnostics %v, want one %s", m.Diagnostics, codeInvalid)
	}
}

func TestAbsentInputIsEmpty(t *testing.T) {
	t.Parallel()
	cases := map[phases.Phase]phases.Input{
		phases.ToolPreCall: &phases.ToolPreCallInput{},
		"x.host.phase":     &phases.CustomInput{Name: "x.host.phase"},
		"of.the.future":    nil,
	}
	for phase, want := range cases {
		t.Run(string(phase), func(t *testing.T) {
			t.Parallel()
			d := &phases.Dispatch{Phase: phase}
			completeInput(d, phases.Standard())
			if diff := cmp.Diff(want, d.Input); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

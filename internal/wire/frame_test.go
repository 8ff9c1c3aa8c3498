package wire

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/grapnelhq/grapnel/internal/wire/pluginpb"
	"github.com/grapnelhq/grapnel/phases"
)

func FuzzEnvelope(f *testing.F) {
	f.Add([]byte{8, 5, 16, 7, 42, 2, 10, 0})
	f.Add([]byte{8, 5, 0x7a, 1, 'x'})
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := parseEnvelope(data, pluginUnsupported)
		var pb pluginpb.PluginFrame
		if proto.Unmarshal(data, &pb) != nil {
			return // our reader looks less deep
		}
		if err != nil {
			t.Fatalf("generated code reads it, we say %v", err)
		}
		if got.id != pb.GetId() || got.incarnation != pb.GetIncarnation() {
			t.Errorf("got %d/%d, want %d/%d", got.id, got.incarnation, pb.GetId(), pb.GetIncarnation())
		}
		if (got.body != 0) != (pb.GetBody() != nil) {
			t.Errorf("got body %d, want %v", got.body, pb.GetBody())
		}
	})
}

// FuzzResult reads arbitrary bytes as a plugin's answer. What is accepted is
// protobuf, clean text, bounded, and reads the same once written again.
func FuzzResult(f *testing.F) {
	fill := newFiller(f, 9)
	for _, kind := range phases.Kinds() {
		m := &result{Result: phases.Result{Contributions: []phases.Contribution{fill.contribution(kind)}}}
		f.Add(encode(f, m, resultFields))
	}
	f.Add(protowire.AppendString([]byte{26}, "\x0a\x07timeout"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m := new(result)
		if read(&form{rule: ruleClean}, data, false, m, resultFields) != nil {
			return
		}
		if err := proto.Unmarshal(data, &pluginpb.Result{}); err != nil {
			t.Errorf("accepted what generated code refuses: %v", err)
		}
		checkRewritten(t, m, resultFields)
	})
}

// FuzzDispatch reads arbitrary bytes as a host's call.
func FuzzDispatch(f *testing.F) {
	fill := newFiller(f, 10)
	for _, row := range phases.Standard().Rows() {
		f.Add(encode(f, &phases.Dispatch{Phase: row.Phase, Input: fill.input(row)}, dispatchFields))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m := new(phases.Dispatch)
		if read(&form{}, data, false, m, dispatchFields) == nil {
			checkRewritten(t, m, dispatchFields)
		}
	})
}

// checkRewritten writes what was read, and reads it again. Maps have no order,
// so that values are compared, not bytes.
func checkRewritten[T any](t *testing.T, m *T, fields func(*form, *T)) {
	t.Helper()
	first := form{writing: true, rule: ruleClean}
	if fields(&first, m); first.problem() != nil {
		first = form{writing: true}
		if fields(&first, m); first.problem() != nil {
			return // a time that has no form on the wire
		}
	}
	again := new(T)
	if err := read(&form{}, first.out, false, again, fields); err != nil {
		t.Fatalf("cannot read what was written: %v", err)
	}
	second := form{writing: true}
	fields(&second, again)
	if len(first.out) != len(second.out) {
		t.Errorf("written anew it has %d bytes, not %d", len(second.out), len(first.out))
	}
}

func TestRefusedMessages(t *testing.T) {
	t.Parallel()
	text := func(s string) []byte {
		return encode(t, &phases.AnswerBudget{}, func(f *form, _ *phases.AnswerBudget) { f.out = protowire.AppendString([]byte{26}, s) })
	}
	bomb := bytes.Repeat([]byte{18, 0}, maxMessages+1)
	cases := []struct {
		name, want string
		data       []byte
	}{
		{"invalid UTF-8 deep inside", "field 2.3: text is not valid UTF-8", protowire.AppendBytes([]byte{18}, text("\xff"))},
		{"NUL", "with a NUL", protowire.AppendBytes([]byte{18}, text("a\x00"))},
		{"override", "reorders text", protowire.AppendBytes([]byte{18}, text("\u202e"))},
		{"cut short", "field 2.3: field is cut short", protowire.AppendBytes([]byte{18}, []byte{26, 9, 'x'})},
		{"group", "unknown wire type", []byte{11, 12}},
		{"field number 0", "no field tag", []byte{0, 0}},
		{"too many messages", "more than 65536 messages", bomb},
		{"overlong number", "cut short", append([]byte{8}, bytes.Repeat([]byte{0xff}, 11)...)},
		{"bad time", "is not a time", protowire.AppendBytes([]byte{10}, protowire.AppendBytes([]byte{0x9a, 1}, protowire.AppendBytes([]byte{34}, []byte("today"))))},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := read(&form{rule: ruleClean}, c.data, false, new(result), resultFields)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestUnknownFields reads a message from a later version: fields of unknown
// numbers and of other wire types are skipped.
func TestUnknownFields(t *testing.T) {
	t.Parallel()
	var data []byte
	data = protowire.AppendFixed64(protowire.AppendTag(data, 77, protowire.Fixed64Type), 5)
	data = protowire.AppendVarint(protowire.AppendTag(data, 1, protowire.VarintType), 5) // code is a string
	data = protowire.AppendString(protowire.AppendTag(data, 3, protowire.BytesType), "message")
	data = protowire.AppendFixed32(protowire.AppendTag(data, 78, protowire.Fixed32Type), 5)
	data = protowire.AppendString(protowire.AppendTag(data, 1, protowire.BytesType), "code")
	got := decodeAs(t, data, diagnosticFields)
	if diff := cmp.Diff(&phases.Diagnostic{Code: "code", Message: "message"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

package kitgen

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/grapnelhq/grapnel/internal/wire/pluginpb"
	"github.com/grapnelhq/grapnel/phases"
)

// model is the plugin protocol as a kit of any language needs it: what a host sends with a call, what a plugin answers
// and says of itself, the closed sets of words, and the table of phases. It leaves out the frames around them.
type model struct {
	Messages []message // in the order of plugin.proto
	Words    []wordSet // in the order of their names
	Phases   []phase   // in the order of the table
	Kinds    []kind    // in the order of the specification
	// Always are the kinds that every phase takes, Free those that a hook need not list, and Seen the sets that a hook may see.
	Always, Free, Seen []string
}

// words returns the values of a word set.
func (m *model) words(name string) []string {
	return m.Words[slices.IndexFunc(m.Words, func(w wordSet) bool { return w.Name == name })].Values
}

// kinds returns the words of the kinds of contributions.
func (m *model) kinds() (list []string) {
	for _, k := range m.Kinds {
		list = append(list, k.Name)
	}
	return list
}

// message is one message of plugin.proto.
type message struct {
	Name, Doc string
	Fields    []field
	Sent      bool // the plugin writes it; otherwise it only reads it
}

// field is one field of a message.
type field struct {
	Name, Doc string
	// Type is "string", "bool", "int", "number", "json", or the name of a message.
	Type      string
	List, Map bool
	// Absent means that a missing field differs from an empty one, Optional that plugin.proto says so.
	Absent, Optional bool
	// HostsOwn means that the host drops what a plugin says there.
	HostsOwn bool
	// Required means that the host refuses a message without the field. It is set in messages that a plugin sends.
	Required bool
	Words    string // the word set that the values belong to, if any
	Oneof    string // the oneof that the field belongs to, if any
}

// wordSet is a closed set of words, such as the verdicts.
type wordSet struct {
	Name, Doc string
	Values    []string
}

// phase is a row of the phase table.
type phase struct {
	Name, When string
	// Key is the handler's name without "Input": ToolPreCall. Field and Message are those of its input in Dispatch.
	Key, Field, Message string
	Kinds, Roles        []string
}

// kind is a kind of contribution: its word, which is also the field in Contribution, and its message.
type kind struct{ Name, Message string }

// hostsOwn are fields that the host fills in.
func hostsOwn() map[string][]string {
	return map[string][]string{"Diagnostic": {"plugin", "subscription", "other_subscription", "slot", "visibility", "cause"}}
}

// load reads the model from the compiled descriptors, the text of plugin.proto (for its comments) and package phases.
func load(root string) (*model, error) {
	source, err := os.ReadFile(filepath.Join(root, "proto", "grapnel", "plugin", "v1", "plugin.proto"))
	if err != nil {
		return nil, err
	}
	vocabulary, err := readVocabulary(filepath.Join(root, "phases"))
	if err != nil {
		return nil, err
	}
	all := pluginpb.File_grapnel_plugin_v1_plugin_proto.Messages()
	reads, sends := map[string]bool{}, map[string]bool{}
	reach(all.ByName("Dispatch"), reads)
	reach(all.ByName("CallTool"), reads)
	reach(all.ByName("Description"), sends)
	reach(all.ByName("Contribution"), sends)
	reads["ToolResult"] = true // for Python; no field of it is required

	m := &model{Always: words(phases.AlwaysAccepted()), Seen: phases.SeenSets()}
	docs := comments(string(source))
	for i := range all.Len() {
		if name := string(all.Get(i).Name()); reads[name] || sends[name] {
			m.Messages = append(m.Messages, messageOf(all.Get(i), docs, vocabulary, sends[name]))
		}
	}
	for _, k := range phases.Kinds() {
		f := all.ByName("Contribution").Fields().ByName(protoreflect.Name(k))
		m.Kinds = append(m.Kinds, kind{string(k), string(f.Message().Name())})
		if !k.NeedsGrant() {
			m.Free = append(m.Free, string(k))
		}
	}
	for _, row := range phases.Standard().Rows() {
		input := reflect.TypeOf(row.NewInput()).Elem().Name()
		p := phase{Name: string(row.Phase), When: row.When, Key: strings.TrimSuffix(input, "Input"), Message: input, Kinds: words(row.Kinds)}
		for _, role := range phases.Roles() {
			if row.Takes(role) {
				p.Roles = append(p.Roles, string(role))
			}
		}
		fields := all.ByName("Dispatch").Fields()
		for i := range fields.Len() {
			if f := fields.Get(i); f.Message() != nil && string(f.Message().Name()) == input {
				p.Field = string(f.Name())
			}
		}
		if p.Field == "" {
			return nil, fmt.Errorf("%s: Dispatch has no field for %s", row.Phase, input)
		}
		m.Phases = append(m.Phases, p)
	}
	m.Words = vocabulary.wordSets(m.Messages)
	return m, nil
}

// reach adds the names of d and of all messages in its fields.
func reach(d protoreflect.MessageDescriptor, found map[string]bool) {
	if found[string(d.Name())] {
		return
	}
	found[string(d.Name())] = true
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		if f.IsMap() {
			f = f.MapValue()
		}
		if f.Message() != nil {
			reach(f.Message(), found)
		}
	}
}

func messageOf(d protoreflect.MessageDescriptor, docs map[string]string, v *vocabulary, sent bool) message {
	m := message{Name: string(d.Name()), Doc: docs[string(d.Name())], Sent: sent}
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		name := string(f.Name())
		out := field{
			Name: name, Doc: docs[m.Name+"."+name], List: f.IsList(), Map: f.IsMap(), Optional: f.HasOptionalKeyword(),
			HostsOwn: slices.Contains(hostsOwn()[m.Name], name),
		}
		if o := f.ContainingOneof(); o != nil && !o.IsSynthetic() {
			out.Oneof = string(o.Name())
		}
		if f.IsMap() {
			f = f.MapValue()
		}
		out.Type = typeOf(f)
		same := v.member(m.Name, name)
		out.Required, out.Words = sent && same.required, same.words
		out.Absent = out.Optional || same.pointer && !sent
		m.Fields = append(m.Fields, out)
	}
	return m
}

func typeOf(f protoreflect.FieldDescriptor) string {
	switch f.Kind() { //nolint:exhaustive // all others that the contract uses are integers
	case protoreflect.MessageKind:
		return string(f.Message().Name())
	case protoreflect.BytesKind:
		return "json"
	case protoreflect.DoubleKind:
		return "number"
	case protoreflect.StringKind, protoreflect.BoolKind:
		return f.Kind().String()
	}
	return "int"
}

func words[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = string(w)
	}
	return out
}

// comments returns the comments of a .proto file, of messages by NAME and of their fields by NAME.FIELD.
func comments(source string) map[string]string {
	docs := map[string]string{}
	var in string
	var doc []string
	for line := range strings.Lines(source) {
		line = strings.TrimSpace(line)
		words := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "//"):
			doc = append(doc, strings.TrimSpace(strings.TrimPrefix(line, "//")))
			continue
		case len(words) > 2 && words[0] == "message":
			in = words[1]
			docs[in] = strings.Join(doc, " ")
		case strings.Contains(line, " = "):
			before, _, _ := strings.Cut(line, " = ")
			name := before[strings.LastIndex(before, " ")+1:]
			docs[in+"."+name] = strings.Join(doc, " ")
		}
		doc = nil
	}
	return docs
}

// vocabulary is what package phases declares: word types with their constants, and structs.
type vocabulary struct {
	docs    map[string]string
	words   map[string][]string
	members map[string]map[string]member // by struct and JSON name
}

// member is a field of a struct.
type member struct {
	required, pointer bool
	words             string
}

// renamed are the messages whose struct in package phases has another name.
func renamed() map[string]string {
	return map[string]string{"SectionFrame": "Frame", "CallTool": "ToolCall"}
}

func (v *vocabulary) member(message, field string) member {
	if other, ok := renamed()[message]; ok {
		message = other
	}
	for _, suffix := range []string{"_json", "_ns"} {
		field = strings.TrimSuffix(field, suffix)
	}
	m := v.members[message][field]
	if v.words[m.words] == nil {
		m.words = ""
	}
	if message == "SourceRef" && field == "kind" {
		m.words = sourceKind
	}
	return m
}

const sourceKind = "SourceKind" // these words have no type of their own in Go

// wordSets returns the sets that the fields of messages, failure policies and host services use.
func (v *vocabulary) wordSets(messages []message) []wordSet {
	v.docs[sourceKind], v.words[sourceKind] = "SourceKind says what a SourceRef names.", phases.SourceKinds()
	v.words["Role"], v.words["Phase"] = words(phases.Roles()), phases.Standard().Names() // without those of ledger rows
	used := map[string]bool{"Cause": true, "FailureWord": true, "Stop": true}
	for i := range messages {
		for _, f := range messages[i].Fields {
			used[f.Words] = true
		}
	}
	var sets []wordSet
	for name, values := range v.words {
		if used[name] {
			sets = append(sets, wordSet{name, v.docs[name], values})
		}
	}
	slices.SortFunc(sets, func(a, b wordSet) int { return strings.Compare(a.Name, b.Name) })
	return sets
}

func readVocabulary(dir string) (*vocabulary, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	v := &vocabulary{docs: map[string]string{}, words: map[string][]string{}, members: map[string]map[string]member{}}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, decl := range file.Decls {
			if d, ok := decl.(*ast.GenDecl); ok {
				v.read(d)
			}
		}
	}
	return v, nil
}

func (v *vocabulary) read(d *ast.GenDecl) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			first, _, _ := strings.Cut(strings.Join(strings.Fields(d.Doc.Text()), " ")+" ", ". ")
			v.docs[spec.Name.Name] = strings.TrimSuffix(first, ".") + "."
			if s, ok := spec.Type.(*ast.StructType); ok {
				v.members[spec.Name.Name] = membersOf(s)
			}
		case *ast.ValueSpec:
			typ, ok := spec.Type.(*ast.Ident)
			if d.Tok != token.CONST || !ok || typ.Name == "string" {
				continue
			}
			for _, value := range spec.Values {
				if lit, ok := value.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					word, err := strconv.Unquote(lit.Value)
					if err == nil {
						v.words[typ.Name] = append(v.words[typ.Name], word)
					}
				}
			}
		}
	}
}

func membersOf(s *ast.StructType) map[string]member {
	members := map[string]member{}
	for _, f := range s.Fields.List {
		if f.Tag == nil {
			continue
		}
		tag, err := strconv.Unquote(f.Tag.Value)
		if err != nil {
			continue
		}
		name, options, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		m := member{required: !strings.HasPrefix(options, "omit")}
		typ := f.Type
		if star, ok := typ.(*ast.StarExpr); ok {
			m.pointer, typ = true, star.X
		}
		if list, ok := typ.(*ast.ArrayType); ok {
			typ = list.Elt
		}
		if id, ok := typ.(*ast.Ident); ok {
			m.words = id.Name
		}
		members[name] = m
	}
	return members
}

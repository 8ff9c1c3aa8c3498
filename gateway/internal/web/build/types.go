package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

type method struct {
	Description string             `json:"description"`
	Right       string             `json:"right"`
	Params      *jsonschema.Schema `json:"params"`
	Result      *jsonschema.Schema `json:"result"`
}

// typescript makes types of the gateway's schema: Methods and Notifications, by name, and before them the objects that
// are in more than one place.
func typescript(schema json.RawMessage) ([]byte, error) {
	var doc struct {
		Methods       map[string]method `json:"methods"`
		Notifications map[string]method `json:"notifications"`
	}
	if err := json.Unmarshal(schema, &doc); err != nil {
		return nil, err
	}
	p := &printer{seen: map[string]*shape{}}
	for _, name := range slices.Sorted(maps.Keys(doc.Methods)) {
		p.count(doc.Methods[name].Params, words(name, "params"))
		p.count(doc.Methods[name].Result, words(name, "result"))
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Notifications)) {
		p.count(doc.Notifications[name].Params, words(name, "params"))
	}
	p.names()

	b := &strings.Builder{}
	b.WriteString("// Code generated from \"grapnel schema rpc\" by gateway/internal/web/build. DO NOT EDIT.\n\n")
	b.WriteString("/** Any JSON value. */\nexport type Json = null | boolean | number | string | Json[] | { [name: string]: Json };\n\n")
	for _, s := range p.named {
		fmt.Fprintf(b, "interface %s %s\n\n", s.name, p.body(s.of, ""))
	}
	b.WriteString("/** Params and results of the methods. */\nexport interface Methods {\n")
	for _, name := range slices.Sorted(maps.Keys(doc.Methods)) {
		m := doc.Methods[name]
		fmt.Fprintf(b, "  /** %s Right: %s. */\n  %q: {\n    params: %s;\n    result: %s;\n  };\n",
			comment(m.Description), or(m.Right, "none"), name, p.typeOf(m.Params, "    "), p.typeOf(m.Result, "    "))
	}
	b.WriteString("}\n\n/** Params of the notifications. */\nexport interface Notifications {\n")
	for _, name := range slices.Sorted(maps.Keys(doc.Notifications)) {
		n := doc.Notifications[name]
		fmt.Fprintf(b, "  /** %s */\n  %q: %s;\n", comment(n.Description), name, p.typeOf(n.Params, "  "))
	}
	b.WriteString("}\n")
	return []byte(b.String()), nil
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

func comment(text string) string { return strings.ReplaceAll(text, "*/", "* /") }

func (p *printer) typeOf(s *jsonschema.Schema, indent string) string {
	switch {
	case s == nil:
		return "Json"
	case len(s.Enum) > 0:
		var words []string
		for _, v := range s.Enum {
			words = append(words, fmt.Sprintf("%q", v)) // all of ours are words
		}
		return strings.Join(words, " | ")
	case len(s.AnyOf) > 0:
		return p.union(s.AnyOf, indent)
	case len(s.OneOf) > 0:
		return p.union(s.OneOf, indent)
	}
	types := s.Types
	if s.Type != "" {
		types = []string{s.Type}
	}
	if len(types) == 0 {
		return "Json"
	}
	var parts []string
	for _, t := range types {
		parts = append(parts, p.plain(s, t, indent))
	}
	return strings.Join(parts, " | ")
}

func (p *printer) union(list []*jsonschema.Schema, indent string) string {
	var parts []string
	for _, s := range list {
		parts = append(parts, p.typeOf(s, indent))
	}
	return strings.Join(parts, " | ")
}

func (p *printer) plain(s *jsonschema.Schema, name, indent string) string {
	switch name {
	case "integer", "number":
		return "number"
	case "array":
		element := p.typeOf(s.Items, indent)
		if strings.Contains(element, " | ") {
			return "(" + element + ")[]"
		}
		return element + "[]"
	case "object":
		return p.object(s, indent)
	default:
		return name // null, boolean, string
	}
}

func (p *printer) object(s *jsonschema.Schema, indent string) string {
	if named := p.seen[shapeOf(s)]; named != nil && named.name != "" {
		return named.name
	}
	return p.body(s, indent)
}

func (p *printer) body(s *jsonschema.Schema, indent string) string {
	if len(s.Properties) == 0 {
		if s.AdditionalProperties != nil && s.AdditionalProperties.Not == nil {
			return "{ [name: string]: " + p.typeOf(s.AdditionalProperties, indent) + " }"
		}
		return "Record<string, never>"
	}
	b := &strings.Builder{}
	b.WriteString("{\n")
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		member, mark := s.Properties[name], "?"
		if slices.Contains(s.Required, name) {
			mark = ""
		}
		if member.Description != "" {
			fmt.Fprintf(b, "%s  /** %s */\n", indent, comment(member.Description))
		}
		fmt.Fprintf(b, "%s  %s%s: %s;\n", indent, memberName(name), mark, p.typeOf(member, indent+"  "))
	}
	b.WriteString(indent + "}")
	return b.String()
}

func memberName(name string) string {
	for _, r := range name {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' {
			return strconv.Quote(name)
		}
	}
	return name
}

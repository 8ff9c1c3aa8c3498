package phases

import (
	"encoding/json"
	"slices"
	"unicode/utf8"
)

// visitor sees the fields of an input one by one, by JSON name. Copying,
// withholding and the environment of conditions are three visitors, so that an
// input type states its fields once.
type visitor interface {
	text(name string, p *Text)
	preview(name string, p *Preview)
	raw(name string, p *json.RawMessage)
	list(name string, p *[]string)
	word(name string, p *string)
	flag(name string, p *bool)
	number(name string, p *int)
	// other shows a field of a type of its own by closures.
	other(name string, o otherField)
}

type otherField struct {
	clear func()
	// copy unshares what the field points to; nil where there is nothing.
	copy  func()
	empty bool
	value func() any
	// check looks at the texts and the embedded JSON; nil where there are none.
	check func(v *contributionCheck)
}

// Phase implements Input.
func (*SessionStartInput) Phase() Phase { return SessionStart }

// Phase implements Input.
func (*SessionResumeInput) Phase() Phase { return SessionResume }

// Phase implements Input.
func (*PrePolicyInput) Phase() Phase { return PrePolicy }

// Phase implements Input.
func (*PrePromptContextInput) Phase() Phase { return PrePromptContext }

// Phase implements Input.
func (*PostPreflightInput) Phase() Phase { return PostPreflight }

// Phase implements Input.
func (*PreToolsInput) Phase() Phase { return PreTools }

// Phase implements Input.
func (*PrePromptCompileInput) Phase() Phase { return PrePromptCompile }

// Phase implements Input.
func (*PostPromptCompileInput) Phase() Phase { return PostPromptCompile }

// Phase implements Input.
func (*RuntimePreContextInput) Phase() Phase { return RuntimePreContext }

// Phase implements Input.
func (*ToolPreCallInput) Phase() Phase { return ToolPreCall }

// Phase implements Input.
func (*ToolPostCallInput) Phase() Phase { return ToolPostCall }

// Phase implements Input.
func (*PostTurnInput) Phase() Phase { return PostTurn }

// Phase implements Input.
func (*PreCompactionInput) Phase() Phase { return PreCompaction }

// Phase implements Input.
func (*PostCompactionInput) Phase() Phase { return PostCompaction }

// Phase implements Input.
func (*SessionEndInput) Phase() Phase { return SessionEnd }

// Phase implements Input.
func (in *CustomInput) Phase() Phase { return in.Name }

func (in *SessionStartInput) visit(v visitor)  { v.word("source", &in.Source) }
func (in *SessionResumeInput) visit(v visitor) { v.raw("state", &in.State) }
func (in *PrePolicyInput) visit(v visitor) {
	v.text("user_text", &in.UserText)
	v.word("model", &in.Model)
	v.word("provider", &in.Provider)
}

func (in *PrePromptContextInput) visit(v visitor) {
	v.text("user_text", &in.UserText)
	v.word("model", &in.Model)
	v.word("provider", &in.Provider)
}

func (in *PostPreflightInput) visit(v visitor) {
	v.text("user_text", &in.UserText)
	v.word("model", &in.Model)
	v.word("provider", &in.Provider)
	v.raw("recall_plan", &in.RecallPlan)
}

func (in *PreToolsInput) visit(v visitor) {
	v.flag("tool_calling", &in.ToolCalling)
	v.list("existing_tools", &in.ExistingTools)
}

func (in *PrePromptCompileInput) visit(v visitor) {
	v.flag("tool_calling", &in.ToolCalling)
	v.list("available_tools", &in.AvailableTools)
	v.list("sections", &in.Sections)
}

func (in *PostPromptCompileInput) visit(v visitor) {
	v.raw("manifest", &in.Manifest)
	v.text("prompt_text", &in.PromptText)
}
func (in *RuntimePreContextInput) visit(v visitor) { v.text("user_text", &in.UserText) }
func (in *ToolPreCallInput) visit(v visitor) {
	v.word(alwaysSent, &in.Tool)
	v.raw("arguments", &in.Arguments)
	v.list("touched_paths", &in.TouchedPaths)
}

func (in *ToolPostCallInput) visit(v visitor) {
	v.word(alwaysSent, &in.Tool)
	v.raw("arguments", &in.Arguments)
	v.preview("result", &in.Result)
	v.list("touched_paths", &in.TouchedPaths)
	v.word("outcome", &in.Outcome)
}

func (in *PostTurnInput) visit(v visitor) {
	v.word("status", (*string)(&in.Status))
	v.preview("user_text", &in.UserText)
	v.preview("assistant_text", &in.AssistantText)
	v.preview("error", &in.Error)
	v.other("tool_events", otherField{
		clear: func() { in.ToolEvents = nil },
		copy:  func() { in.ToolEvents = slices.Clone(in.ToolEvents) },
		empty: len(in.ToolEvents) == 0,
		value: func() any { return in.ToolEvents },
		check: in.checkToolEvents,
	})
	v.other("domain_events", otherField{
		clear: func() { in.DomainEvents = nil },
		copy:  in.copyDomainEvents,
		empty: len(in.DomainEvents) == 0,
		value: func() any { return in.DomainEvents },
		check: in.checkDomainEvents,
	})
	v.other("usage", otherField{
		clear: func() { in.Usage = Usage{} },
		empty: in.Usage == Usage{},
		value: func() any { return in.Usage },
	})
}

func (in *PostTurnInput) checkToolEvents(v *contributionCheck) {
	for _, e := range in.ToolEvents {
		for _, s := range []string{e.Tool, e.CallID, e.Outcome} {
			v.text("tool_events", s, 0)
		}
	}
}

func (in *PostTurnInput) checkDomainEvents(v *contributionCheck) {
	for _, e := range in.DomainEvents {
		v.text("domain_events", e.Kind, 0)
		v.json("domain_events", e.Details, false)
	}
}

func (in *PostTurnInput) copyDomainEvents() {
	in.DomainEvents = slices.Clone(in.DomainEvents)
	for i := range in.DomainEvents {
		in.DomainEvents[i].Details = cloneRaw(in.DomainEvents[i].Details)
	}
}

func (in *PreCompactionInput) visit(v visitor) {
	v.word("trigger", &in.Trigger)
	v.other("source_range", otherField{
		clear: func() { in.SourceRange = SourceRange{} },
		empty: in.SourceRange == SourceRange{},
		value: func() any { return in.SourceRange },
		check: func(v *contributionCheck) {
			v.text("source_range", in.SourceRange.From, 0)
			v.text("source_range", in.SourceRange.To, 0)
		},
	})
	v.number("token_budget", &in.TokenBudget)
	v.list("policies", &in.Policies)
}

func (in *PostCompactionInput) visit(v visitor) {
	v.preview("summary", &in.Summary)
	v.list("lost", &in.Lost)
}
func (in *SessionEndInput) visit(v visitor) { v.word("reason", &in.Reason) }

// visit shows each member of the object as embedded JSON and, when a visitor
// changed one, writes the object anew.
func (in *CustomInput) visit(v visitor) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(in.Fields, &fields) != nil {
		return // refused earlier, by DecodeInput
	}
	changed := false
	for name, value := range fields {
		before := string(value)
		v.raw(name, &value)
		if string(value) != before {
			fields[name], changed = value, true
		}
	}
	if !changed {
		in.Fields = cloneRaw(in.Fields)
		return
	}
	if out, err := json.Marshal(fields); err == nil {
		in.Fields = out
	}
}

func (in *SessionStartInput) shallow() Input      { c := *in; return &c }
func (in *SessionResumeInput) shallow() Input     { c := *in; return &c }
func (in *PrePolicyInput) shallow() Input         { c := *in; return &c }
func (in *PrePromptContextInput) shallow() Input  { c := *in; return &c }
func (in *PostPreflightInput) shallow() Input     { c := *in; return &c }
func (in *PreToolsInput) shallow() Input          { c := *in; return &c }
func (in *PrePromptCompileInput) shallow() Input  { c := *in; return &c }
func (in *PostPromptCompileInput) shallow() Input { c := *in; return &c }
func (in *RuntimePreContextInput) shallow() Input { c := *in; return &c }
func (in *ToolPreCallInput) shallow() Input       { c := *in; return &c }
func (in *ToolPostCallInput) shallow() Input      { c := *in; return &c }
func (in *PostTurnInput) shallow() Input          { c := *in; return &c }
func (in *PreCompactionInput) shallow() Input     { c := *in; return &c }
func (in *PostCompactionInput) shallow() Input    { c := *in; return &c }
func (in *SessionEndInput) shallow() Input        { c := *in; return &c }
func (in *CustomInput) shallow() Input            { c := *in; return &c }

// alwaysSent is the field that needs no grant: the tool's name.
const alwaysSent = "tool"

// CloneInput returns a copy of in that shares no mutable memory with it.
func CloneInput(in Input) Input {
	out := in.shallow()
	out.visit(cloner{})
	return out
}

type cloner struct{}

func (cloner) text(string, *Text)               {}
func (cloner) preview(string, *Preview)         {}
func (cloner) raw(_ string, p *json.RawMessage) { *p = cloneRaw(*p) }
func (cloner) list(_ string, p *[]string)       { *p = slices.Clone(*p) }
func (cloner) word(string, *string)             {}
func (cloner) flag(string, *bool)               {}
func (cloner) number(string, *int)              {}
func (cloner) other(_ string, o otherField) {
	if o.copy != nil {
		o.copy()
	}
}

// Withhold returns a copy of in without the fields for which see is false, and
// their names in order. Texts become {withheld, chars}, embedded JSON likewise;
// other fields become empty. The tool's name is always kept, and so is a field
// that is empty anyway.
func Withhold(in Input, see func(field string) bool) (Input, []string) {
	out := in.shallow()
	w := &withholder{see: see}
	out.visit(w)
	slices.Sort(w.names)
	return out, w.names
}

type withholder struct {
	see   func(string) bool
	names []string
}

// hides records and reports that a field which is there may not be seen.
func (w *withholder) hides(name string, empty bool) bool {
	if empty || name == alwaysSent || w.see(name) {
		return false
	}
	w.names = append(w.names, name)
	return true
}

func (w *withholder) text(name string, p *Text) {
	if w.hides(name, p.IsZero()) {
		*p = p.withhold()
	}
}

func (w *withholder) preview(name string, p *Preview) {
	if w.hides(name, p.IsZero()) {
		*p = p.withhold()
	}
}

func (w *withholder) raw(name string, p *json.RawMessage) {
	if !w.hides(name, len(*p) == 0) {
		*p = cloneRaw(*p)
		return
	}
	shape, err := json.Marshal(withheldJSON{true, utf8.RuneCount(*p)})
	if err != nil {
		shape = nil // two plain fields always encode
	}
	*p = shape
}

func (w *withholder) list(name string, p *[]string) {
	if w.hides(name, len(*p) == 0) {
		*p = nil
		return
	}
	*p = slices.Clone(*p)
}

func (w *withholder) word(name string, p *string) {
	if w.hides(name, *p == "") {
		*p = ""
	}
}

func (w *withholder) flag(name string, p *bool) {
	if w.hides(name, !*p) {
		*p = false
	}
}

func (w *withholder) number(name string, p *int) {
	if w.hides(name, *p == 0) {
		*p = 0
	}
}

func (w *withholder) other(name string, o otherField) {
	if w.hides(name, o.empty) {
		o.clear()
		return
	}
	cloner{}.other(name, o)
}

// InputFields returns the fields of in by JSON name as plain values: texts as
// strings, embedded JSON decoded (nil where absent or not valid). Of a zero
// input it gives the names and types that conditions are checked against.
func InputFields(in Input) map[string]any {
	m := mapper{}
	in.shallow().visit(m)
	return m
}

type mapper map[string]any

func (m mapper) text(name string, p *Text)       { m[name] = p.Value }
func (m mapper) preview(name string, p *Preview) { m[name] = p.Text }
func (m mapper) raw(name string, p *json.RawMessage) {
	var v any
	if len(*p) > 0 && json.Unmarshal(*p, &v) != nil {
		v = nil
	}
	m[name] = v
}
func (m mapper) list(name string, p *[]string)   { m[name] = *p }
func (m mapper) word(name string, p *string)     { m[name] = *p }
func (m mapper) flag(name string, p *bool)       { m[name] = *p }
func (m mapper) number(name string, p *int)      { m[name] = *p }
func (m mapper) other(name string, o otherField) { m[name] = o.value() }

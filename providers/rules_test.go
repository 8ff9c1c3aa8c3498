package providers_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/history"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/providers"
)

// send builds a request.
func send(t *testing.T, build func(providers.Request) (built, error), r providers.Request) built {
	t.Helper()
	out, err := build(r)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// step is a call with its answer.
func step(turn, id, tool string, result history.Result) []history.Entry {
	result.CallID = id
	return []history.Entry{
		{TurnID: turn, Role: history.RoleUser, Text: "Please."},
		{TurnID: turn, Role: history.RoleAssistant, Calls: []history.Call{{ID: id, Tool: tool}}},
		{TurnID: turn, Role: history.RoleTool, Results: []history.Result{result}},
	}
}

func attached(media ...history.Media) []history.Entry {
	return []history.Entry{{Role: history.RoleUser, Text: "Look.", Media: media}}
}

// offences has a request for each kind of rule, made so that it breaks all rules of that kind.
func offences() map[providers.RuleID]providers.Request {
	ok := history.Result{Text: "fine"}
	var many []phases.Tool
	for i := range 600 {
		many = append(many, phases.Tool{Name: fmt.Sprintf("a%03d", i)})
	}
	many = append(many, compiler.RequestTools())
	var pictures []history.Media
	for range 3001 {
		pictures = append(pictures, history.Media{Type: "image/png", Data: []byte("x")})
	}
	image, document := history.Media{Type: "image/bmp", Data: []byte("x")}, history.Media{Type: "application/zip", URI: "https://example.com/a"}
	large := func(kind string) history.Media { return history.Media{Type: kind, Data: make([]byte, 26<<20)} }
	return map[providers.RuleID]providers.Request{
		"cache_key": {Prompt: compiler.Prompt{CachePlan: manifest.CachePlan{Key: "hmac-sha256:" + strings.Repeat("0", 64)}}},
		"tool_name": {
			Tools: []phases.Tool{{Name: "2.a/b"}, {Name: "2_a_b"}, {Name: strings.Repeat("long", 40)}, {Name: strings.Repeat("long", 41)}},
			Turn:  slices.Concat(step("1", "c1", "2.a/b", ok), step("2", "c2", "gone tool", ok)),
		},
		"tool_count": {Tools: many},
		"call_id": {Turn: slices.Concat(
			step("1", "functions.Bash:0", "t", ok), step("2", strings.Repeat("x", 120), "t", ok), step("3", strings.Repeat("x", 121), "t", ok),
		)},
		"call_unique": {Turn: slices.Concat(step("1", "call_0", "t", ok), step("2", "call_0", "t", ok), step("3", "call_0", "t", ok))},
		"error_text":  {Turn: step("1", "c1", "t", history.Result{IsError: true})},
		"signature":   {Turn: step("1", "c1", "t", ok)},
		"image":       {Turn: attached(image, large("image/png"))},
		"document":    {Turn: attached(document, large("application/pdf"))},
		"media_count": {Turn: attached(pictures...)},
	}
}

// TestPublicRules: a request that breaks a rule leaves the adapter without breaking any, and with a warning.
func TestPublicRules(t *testing.T) {
	t.Parallel()

	requests := offences()
	models := map[string]string{compiler.OpenAI: "gpt-5", compiler.Anthropic: "claude-sonnet-5", compiler.Gemini: "models/gemini-3-pro-preview"}
	for _, rule := range providers.PublicRules() {
		t.Run(rule.Provider+"/"+string(rule.ID), func(t *testing.T) {
			t.Parallel()

			if u, err := url.Parse(rule.Source); err != nil || u.Scheme != "https" || u.Path == "" {
				t.Errorf("the source is no address: %q", rule.Source)
			}
			if _, err := time.Parse(time.DateOnly, rule.Seen); err != nil {
				t.Errorf("the day is no date: %v", err)
			}
			r, ok := requests[rule.ID]
			if !ok {
				t.Fatal("no request breaks this rule")
			}
			r.Model = models[rule.Provider]
			got := send(t, adapters()[rule.Provider].build, r)
			if !slices.ContainsFunc(got.warnings, func(w providers.Warning) bool { return w.Code == rule.Code }) {
				t.Errorf("no warning %s in %v", rule.Code, got.warnings)
			}
			seen := look(t, got.body)
			for _, other := range providers.PublicRules() {
				if other.Provider == rule.Provider {
					for _, breach := range seen.breaches(other) {
						t.Errorf("%s: %s", other.ID, breach)
					}
				}
			}
		})
	}
}

// seen is what a request in JSON has that rules are about.
type seen struct {
	keys, names, calls, answers []string
	tools                       int
	images, documents           []file
	mute, unsigned              int // errors without text, steps without a signature
}

type file struct {
	kind string
	size int
}

func look(t *testing.T, body []byte) *seen {
	t.Helper()
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	s := &seen{}
	s.walk(v)
	return s
}

func (s *seen) walk(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			s.walk(e)
		}
	case map[string]any:
		s.object(v)
		for _, e := range v {
			s.walk(e)
		}
	}
}

func (s *seen) object(v map[string]any) {
	str := func(key string) string { x, _ := v[key].(string); return x }
	list := func(key string) []any { x, _ := v[key].([]any); return x }
	if key := str("prompt_cache_key"); key != "" {
		s.keys = append(s.keys, key)
	}
	for _, tool := range slices.Concat(list("tools"), list("functionDeclarations")) {
		if name, ok := tool.(map[string]any)["name"].(string); ok {
			s.names = append(s.names, name)
			s.tools++
		}
	}
	switch str("type") {
	case "function_call":
		s.calls, s.names = append(s.calls, str("call_id")), append(s.names, str("name"))
	case "function_call_output":
		s.answers = append(s.answers, str("call_id"))
	case "tool_use":
		s.calls, s.names = append(s.calls, str("id")), append(s.names, str("name"))
	case "tool_result":
		s.answers = append(s.answers, str("tool_use_id"))
		if failed, _ := v["is_error"].(bool); failed && len(list("content")) == 0 {
			s.mute++
		}
	case "base64":
		s.file(str("media_type"), str("data"))
	case "input_image":
		kind, data, _ := strings.Cut(strings.TrimPrefix(str("image_url"), "data:"), ";base64,")
		s.file(kind, data)
	case "input_file":
		kind, data, _ := strings.Cut(strings.TrimPrefix(str("file_data"), "data:"), ";base64,")
		s.file(kind, data)
	}
	if kind := str("mimeType"); kind != "" {
		s.file(kind, str("data"))
	}
	if call, ok := v["functionCall"].(map[string]any); ok {
		s.names = append(s.names, fmt.Sprint(call["name"]))
		if str("thoughtSignature") == "" {
			s.unsigned++
		}
	}
}

func (s *seen) file(kind, data string) {
	f := file{kind, len(data) / 4 * 3}
	if strings.HasPrefix(kind, "image/") {
		s.images = append(s.images, f)
	} else {
		s.documents = append(s.documents, f)
	}
}

func (s *seen) breaches(r providers.Rule) (out []string) {
	match := regexp.MustCompile(`^(?:` + r.Match + `)$`)
	value := func(v string, size int) {
		if r.Max > 0 && size > r.Max || r.Match != "" && !match.MatchString(v) {
			out = append(out, fmt.Sprintf("%.80q (%d)", v, size))
		}
	}
	count := func(n int) { value("", n) }
	switch r.ID {
	case "cache_key":
		for _, v := range s.keys {
			value(v, len(v))
		}
	case "tool_name":
		for _, v := range s.names {
			value(v, len(v))
		}
	case "tool_count":
		count(s.tools)
	case "call_id":
		for _, v := range s.calls {
			value(v, len(v))
		}
		if !slices.Equal(s.calls, s.answers) {
			out = append(out, fmt.Sprintf("calls %.200q have the answers %.200q", s.calls, s.answers))
		}
	case "call_unique":
		if n := len(slices.Compact(slices.Sorted(slices.Values(s.calls)))); n != len(s.calls) {
			out = append(out, fmt.Sprintf("%d ids for %d calls", n, len(s.calls)))
		}
	case "error_text":
		if s.mute > 0 {
			out = append(out, "an error without text")
		}
	case "signature":
		if s.unsigned > 0 {
			out = append(out, "a step without signature")
		}
	case "image":
		for _, f := range s.images {
			value(f.kind, f.size)
		}
	case "document":
		for _, f := range s.documents {
			value(f.kind, f.size)
		}
	case "media_count":
		count(len(s.images) + len(s.documents))
	default:
		out = append(out, "this test does not know the rule")
	}
	return out
}

// TestMedia: what is accepted goes out as it is, in front of the text.
func TestMedia(t *testing.T) {
	t.Parallel()

	r := providers.Request{Model: "m", Turn: attached(
		history.Media{Type: "image/png", Data: []byte("a picture")}, history.Media{Type: "image/png", URI: "https://example.com/b.png"},
		history.Media{Type: "application/pdf", Name: "c.pdf", Data: []byte("a page")}, history.Media{Type: "application/pdf", URI: "https://example.com/d.pdf"},
		history.Media{Type: "text/plain", Name: "e.txt", Data: []byte("a letter")},
	)}
	for _, provider := range []string{compiler.OpenAI, compiler.Anthropic, compiler.Gemini} {
		got := send(t, adapters()[provider].build, r)
		if len(got.warnings)+len(got.changes) > 0 {
			t.Errorf("%s: %v, %v", provider, got.warnings, got.changes)
		}
		at := 0
		for _, want := range []string{"YSBwaWN0dXJl", "https://example.com/b.png", "YSBwYWdl", "https://example.com/d.pdf", "letter", "Look."} {
			i := bytes.Index(got.body[at:], []byte(want))
			if provider != compiler.Anthropic && want == "letter" {
				i = bytes.Index(got.body[at:], []byte("YSBsZXR0ZXI"))
			}
			if i < 0 {
				t.Errorf("%s: %s is missing or in another place: %s", provider, want, got.body)
				continue
			}
			at += i
		}
	}
}

// TestNativeCallIDs: an id is rewritten in the provider's own form too, and its other blocks keep their bytes.
func TestNativeCallIDs(t *testing.T) {
	t.Parallel()

	turn := func(id, native string) []history.Entry {
		e := step(id, "call_0", "t", history.Result{Text: "fine"})
		e[1].Native = &history.Native{Provider: compiler.Anthropic, Data: json.RawMessage(native)}
		return e
	}
	const thought = `{"type":"thinking","thinking":"hm","signature":"s"}`
	native := `[` + thought + `,{"type":"tool_use","id":"call_0","name":"t","input":{}}]`
	got := send(t, adapters()[compiler.Anthropic].build, providers.Request{Model: "m", Turn: slices.Concat(turn("1", native), turn("2", native))})
	if n := bytes.Count(got.body, []byte(thought)); n != 2 {
		t.Errorf("%d thoughts are as they were, want 2: %s", n, got.body)
	}
	for _, breach := range look(t, got.body).breaches(providers.Rule{ID: "call_unique"}) {
		t.Error(breach)
	}
}

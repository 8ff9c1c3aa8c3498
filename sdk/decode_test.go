package sdk_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/sdk"
)

func TestDecode(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, data, pointer, config, arguments string }{
		{"nothing", ``, "", "", ""},
		{"blanks", "\n ", "", "", ""},
		{"good", `{"limit":3,"nested":{"name":"x"}}`, "", "", ""},
		{"unknown key", `{"limits":3}`, "", `unknown field "limits"`, `unknown field "limits"`},
		{"wrong type", `{"nested":{"name":7}}`, "/nested/name", "want a text, got a number", "nested.name is a number and should be a string"},
		{"wrong type of a number", `{"rate":true}`, "/rate", "want a number, got true or false", "rate is a bool"},
		{"number that does not fit", `{"limit":1.5}`, "/limit", "want a whole number, got the number 1.5", "limit is a number 1.5"},
		{"number as a text of its own", `{"text":[]}`, "/text", "want a text, got a list", "text is a array"},
		{"not an object", `[]`, "", "cannot unmarshal", "not what the tool takes"},
		{"cut off", `{"limit":`, "", "EOF", "EOF"},
		{"two values", `{} {}`, "", "more than one JSON value", "more than one JSON value"},
		{"own rule", `{"own":"x"}`, "/own", "no such thing", "no such thing"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			type values struct {
				Limit  int `json:"limit"`
				Nested struct {
					Name string `json:"name"`
				} `json:"nested"`
				Own  ownRule    `json:"own"`
				Rate float32    `json:"rate"`
				Text netip.Addr `json:"text"`
			}
			a, b := values{Limit: 8}, values{Limit: 8}
			err := sdk.DecodeConfig(json.RawMessage(tt.data), &a)
			config, ok := errors.AsType[*phases.ConfigError](err)
			switch {
			case tt.config == "" && err != nil:
				t.Errorf("config: %v", err)
			case tt.config != "" && (!ok || config.Pointer != tt.pointer || !strings.Contains(config.Message, tt.config)):
				t.Errorf("config: %v, want %q at %q", err, tt.config, tt.pointer)
			}
			if ok && config.AtKey != strings.HasPrefix(config.Message, "unknown field") {
				t.Errorf("AtKey is %t: %v", config.AtKey, config)
			}
			err = sdk.DecodeArguments(json.RawMessage(tt.data), &b)
			if (err == nil) != (tt.arguments == "") || err != nil && !strings.Contains(err.Error(), tt.arguments) {
				t.Errorf("arguments: %v, want %q", err, tt.arguments)
			}
			if strings.TrimSpace(tt.data) == "" && (a.Limit != 8 || b.Limit != 8) {
				t.Errorf("defaults are gone: %+v, %+v", a, b)
			}
		})
	}
}

// ownRule refuses everything, as a plugin's own type may.
type ownRule string

func (*ownRule) UnmarshalJSON([]byte) error { return sdk.ConfigErrorf("/own", "no such %s", "thing") }

func ExampleDecodeConfig() {
	cfg := struct {
		Greeting string `json:"greeting"`
	}{Greeting: "hello"}
	fmt.Println(sdk.DecodeConfig(json.RawMessage(`{"greetings":"hi"}`), &cfg))
	fmt.Println(sdk.DecodeConfig(nil, &cfg), cfg.Greeting)
	// Output:
	// unknown field "greetings" (did you mean "greeting"?)
	// <nil> hello
}

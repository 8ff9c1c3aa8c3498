package prefixcache

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func bytesOf(s string) int { return len(s) }

func TestAnthropicBlocks(t *testing.T) {
	t.Parallel()

	const five = 5 * time.Minute
	tests := []struct {
		name, body string
		want       []Block
		fails      bool
	}{
		{name: "nothing", body: `{"model":"m","system":null,"messages":null}`},
		{
			name: "in the order of the prefix, marks aside",
			body: `{"messages":[{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]},{"role":"assistant","content":"ho"}],
				"system":[{"text":"s","type":"text","cache_control":{"type":"ephemeral","ttl":"1h"}},{"type":"text","text":"d"}],
				"tools":[{"name":"t","input_schema":{"b":1, "a":2},"cache_control":{"ttl":"1h","type":"ephemeral"}}]}`,
			want: []Block{
				{"tools\n" + `{"input_schema":{"b":1,"a":2},"name":"t"}`, 41, time.Hour},
				{"system\ns", 1, time.Hour},
				{"system\nd", 1, 0},
				{"user\nhi", 2, five},
				{"assistant\nho", 2, 0},
			},
		},
		{
			name: "other blocks, and no mark", body: `{"system":"s","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","cache_control":null}]}]}`,
			want: []Block{{"system\ns", 1, 0}, {"user\n" + `{"tool_use_id":"1","type":"tool_result"}`, 40, 0}},
		},
		{
			name: "a mark of the whole", body: `{"cache_control":{"type":"ephemeral"},"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}`,
			want: []Block{{"user\na", 1, 0}, {"user\nb", 1, five}},
		},
		{name: "no JSON", body: `{`, fails: true},
		{name: "a number for content", body: `{"system":1}`, fails: true},
		{name: "a block that is none", body: `{"tools":[1]}`, fails: true},
		{name: "a mark that is none", body: `{"tools":[{"cache_control":1}]}`, fails: true},
		{name: "a lifetime that is none", body: `{"tools":[{"cache_control":{"ttl":"long"}}]}`, fails: true},
		{name: "no lifetime at all", body: `{"system":"s","cache_control":{"ttl":"0s"}}`, fails: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			got, err := AnthropicBlocks([]byte(tt.body), bytesOf)
			if (err != nil) != tt.fails {
				t.Fatalf("error = %v", err)
			}
			if diff := cmp.Diff(got, tt.want); !tt.fails && diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

func TestOpenAIBlocks(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name, body string
		want       []Block
		fails      bool
	}{
		{
			name: "tools first",
			body: `{"input":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"input_text","text":"u"}]},
				{"type":"function_call","name":"f"}],"tools":[{"name":"f"}],"prompt_cache_key":"k"}`,
			want: []Block{
				{Text: "tools\n" + `{"name":"f"}`, Tokens: 12},
				{Text: "system\ns", Tokens: 1},
				{Text: "user\nu", Tokens: 1},
				{Text: "item\n" + `{"name":"f","type":"function_call"}`, Tokens: 35},
			},
		},
		{name: "no JSON", body: `[`, fails: true},
		{name: "an item that is none", body: `{"input":[1]}`, fails: true},
		{name: "content that is none", body: `{"input":[{"role":"user","content":1}]}`, fails: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			got, err := OpenAIBlocks([]byte(tt.body), bytesOf)
			if (err != nil) != tt.fails {
				t.Fatalf("error = %v", err)
			}
			if diff := cmp.Diff(got, tt.want); !tt.fails && diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

// FuzzAnthropicBlocks: whatever comes, nothing panics, and what is compared does
// not depend on where the marks are.
func FuzzAnthropicBlocks(f *testing.F) {
	f.Add(`{"system":[{"text":"s","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":"x"}]}`)
	f.Add(`{"tools":[{"a":{}}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		blocks, err := AnthropicBlocks([]byte(body), bytesOf)
		if err != nil {
			return
		}
		for _, b := range blocks {
			if b.Tokens < 0 || b.Keep < 0 || len(b.Text) <= b.Tokens {
				t.Fatalf("block %+v", b)
			}
		}
		c := NewMarked(MarkedRules{Marks: len(blocks), Lookback: 20})
		if u, err := c.Serve(moment(0), blocks); err == nil && u.Read != 0 {
			t.Fatalf("an empty cache gave %+v", u)
		}
	})
}

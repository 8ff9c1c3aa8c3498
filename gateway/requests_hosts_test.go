package gateway

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/tests/storetest"
)

// TestRequestsOfOtherAgents: what hooks show of a request, or a rollout has of it, is a record with its usage, each message once.
func TestRequestsOfOtherAgents(t *testing.T) {
	home := t.TempDir()
	t.Setenv("CODEX_HOME", home)
	rollout := filepath.Join(home, "sessions", "rollout-1.jsonl")
	if err := os.Mkdir(filepath.Dir(rollout), 0o700); err != nil {
		t.Fatal(err)
	}
	item := func(fields string) string { return `{"type":"response_item","payload":{` + fields + `}}` + "\n" }
	message := func(role, kind, source, text string) string {
		return item(fmt.Sprintf(`"type":"message","role":%q,"content":[{"type":"input_text","text":%q}],"internal_chat_message_metadata_passthrough":{"content_item_kinds":[%q],"content_item_metadata":[{"provenance":{%s}}]}`, role, text, kind, source))
	}
	keep := func(lines ...string) {
		t.Helper()
		if err := os.WriteFile(rollout, []byte(strings.Join(lines, "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	begun := `{"type":"session_meta","payload":{"id":"codex","model_provider":"fake","base_instructions":{"text":"You are a coding agent."}}}` + "\n" +
		message("user", "user.text", `"type":"user"`, "hi") + message("developer", "hooks.additional_context", `"type":"harness","hook":true`, "## Lease\n\nRevision 0.\n\n## Weather\n\nIt rains.") +
		item(`"type":"function_call","namespace":"mcp__probe","name":"tell","arguments":"{}","call_id":"c"`)
	usage := map[string]string{
		"codex":  `"hook_event_name":"PostModelRequest","transcript_path":` + fmt.Sprintf("%q", rollout) + `,"token_usage":{"input_tokens":7}`,
		"gemini": `"hook_event_name":"AfterModel","llm_request":{"model":"m","messages":[%s]},"llm_response":{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":7}}`,
	}
	const said = `{"role":"user","content":"<session_context>Today.</session_context>hi<hook_context>## Lease\n\nRevision 0.\n\n## Weather\n\nIt rains.</hook_context>"}`
	opencode := `"hook_event_name":"Request","model":"m","not_seen":"?","system":[{"ID":"system","Owner":"opencode","Text":"Be brief."},{"ID":"sky","Owner":"grapnel","Stability":"dynamic","Text":"rules"}],
		"tools":[{"ID":"bash","Owner":"opencode","Text":"{}"}],"messages":[[{"Role":"user","Kind":"text","Owner":"user","Text":"hi"}]%s]`
	for host, tt := range map[string]struct {
		steps []string // events, and what is kept before the last
		want  []string
	}{
		"codex": {
			[]string{`"hook_event_name":"UserPromptSubmit","prompt":"hi"`, usage["codex"], "", usage["codex"]},
			[]string{
				"base_instructions codex", "0 user.text user 2", "1 hooks.additional_context grapnel 44", "7 not_seen read_from",
				"base_instructions codex", "2 function_call model 19", "3 function_call_output mcp:probe 4", "7 not_seen read_from",
			},
		},
		"gemini": {
			[]string{`"hook_event_name":"BeforeAgent","prompt":"hi"`, fmt.Sprintf(usage["gemini"], said), fmt.Sprintf(usage["gemini"], said+`,{"role":"model","content":"done"}`)},
			[]string{
				"0 session_context gemini 41", "0 text user 2", "0 hook_context gemini 14", "0 hook_context grapnel 44", "0 hook_context gemini 15", "7 not_seen",
				"1 text model 4", "7 not_seen",
			},
		},
		"opencode": {
			[]string{
				`"hook_event_name":"UserPromptSubmit","prompt":"hi"`, fmt.Sprintf(opencode, ""), `"hook_event_name":"Usage","usage":{"input_tokens":7}`,
				fmt.Sprintf(opencode, `,[{"Role":"assistant","Kind":"text","Owner":"model","Text":"done"}]`), `"hook_event_name":"Usage","usage":{"input_tokens":7}`,
			},
			[]string{
				"system opencode", "sky grapnel", "tool bash opencode", "0 text user 2", "7 not_seen",
				"system opencode", "sky grapnel", "tool bash opencode", "1 text model 4", "7 not_seen",
			},
		},
	} {
		t.Run(host, func(t *testing.T) {
			log, tree, n := logStore(t), storetest.Tree(t, time.Now), &tenant{}
			p := serve(t, Options{Tree: tree, Engine: engineWith(t, tree, log, time.Now, n.plugin()), Log: log}).post(t, "")
			keep(begun)
			for _, step := range tt.steps {
				if step == "" {
					keep(begun, item(`"type":"function_call_output","call_id":"c","output":"told"`), message("assistant", "unknown", "", "done"))
				} else if status, got := p.hook(t, host, `{"session_id":"`+host+`",`+step+`}`); status != http.StatusOK {
					t.Fatalf("%s: status %d: %s", step, status, got)
				}
			}
			var got []string
			for _, m := range observedOf(t, log, host) {
				for i := range m.Sections {
					got = append(got, m.Sections[i].SectionID+" "+m.Sections[i].Owner)
				}
				for _, tool := range m.HostTools {
					got = append(got, "tool "+tool.Name+" "+tool.Owner)
				}
				for _, p := range m.History.Added {
					got = append(got, fmt.Sprintf("%d %s %s %d", p.Message, p.Kind, p.Owner, p.Chars))
				}
				used := must(log.Usage(t.Context(), m.ManifestID))(t)
				line := []string{strconv.Itoa(used[0].InputTokens)}
				for _, e := range m.HostEvents {
					for _, f := range e.Facts {
						line = append(line, f.Name)
					}
				}
				got = append(got, strings.Join(line, " "))
			}
			if diff := cmp.Diff(got, tt.want); diff != "" {
				t.Errorf("(-got +want)\n%s", diff)
			}
		})
	}
}

// TestRolloutElsewhere: a file that is not a rollout of Codex is not read, and the record says so once.
func TestRolloutElsewhere(t *testing.T) {
	t.Setenv("CODEX_HOME", t.TempDir())
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte(`{"payload":{"id":"s"}}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	log, tree, n := logStore(t), storetest.Tree(t, time.Now), &tenant{}
	p := serve(t, Options{Tree: tree, Engine: engineWith(t, tree, log, time.Now, n.plugin()), Log: log}).post(t, "")
	for _, event := range []string{`"UserPromptSubmit","prompt":"hi"`, `"PostModelRequest"`, `"PostModelRequest"`, `"Stop"`} {
		p.hook(t, "codex", fmt.Sprintf(`{"session_id":"s","transcript_path":%q,"hook_event_name":%s}`, secret, event))
	}
	var unread []string
	for _, m := range records(t, log, "s") {
		for _, e := range m.HostEvents {
			unread = append(unread, e.Facts[0].Name)
		}
	}
	if len(unread) != 1 || unread[0] != "unread" || len(observedOf(t, log, "s")) > 0 {
		t.Errorf("the records say %q", unread)
	}
}

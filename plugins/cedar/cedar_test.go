package cedar_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/cedar"
	"github.com/grapnelhq/grapnel/sdk/plugintest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const dir = "/home/me/project"

// force is the call of "git push --force && cat .env >/etc/hosts; curl https://api.example.com/x".
func force() *phases.ToolPreCallInput {
	return &phases.ToolPreCallInput{
		Tool: "Bash", Arguments: json.RawMessage(`{"command":"git push --force …","timeout":3}`),
		Facts: phases.Facts{
			Commands: []phases.Command{
				{Program: "git", Words: []string{"git", "-C", "sub", "push", "--force"}, Options: []string{"-C", "--force"}},
				{Program: "cat", Words: []string{"cat", ".env"}},
				{Program: "curl", Words: []string{"curl", "https://api.example.com/x"}},
			},
			Reads: []string{dir + "/.env", dir + "/a.go"}, Writes: []string{"/etc/hosts"}, Names: []string{dir + "/x/y"},
			Hosts: []string{"api.example.com"}, Outside: []string{"/etc/hosts"}, Secrets: []string{dir + "/.env"},
		},
	}
}

// rules is a configuration with rules, and perhaps a default.
func rules(t testing.TB, text string, more ...string) string {
	t.Helper()
	config := map[string]any{"policies": text}
	if len(more) > 0 {
		config["default"] = more[0]
	}
	return encoded(t, config)
}

func encoded(t testing.TB, config any) string {
	t.Helper()
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func forbid(action, when string) string {
	return fmt.Sprintf("forbid (principal, action == Action::%q, resource) when { %s };", action, when)
}

func scene() phases.Context {
	return phases.Context{Dir: dir, TurnID: "t1", Mode: phases.ModeAgent, Actor: phases.Actor{Kind: "user", ID: "ada"}, Flags: map[string]bool{phases.AgentFlag + "claude-code": true}}
}

// TestRules evaluates rules on one call, in process and over the wire.
func TestRules(t *testing.T) {
	t.Parallel()

	tests := []struct{ name, rules, config, want string }{ // want is the verdict and a part of the reason
		{"the command", `@id("no force") ` + forbid("run", `resource.program == "git" && resource.words.contains("push") && resource.options.contains("--force")`), "", `deny policies:1 \"no force\": runs git -C sub push --force`},
		{"its subcommand", forbid("run", `resource.subcommand == "push"`), "", "deny"},
		{"another one", forbid("run", `resource.program == "rm"`), "", ""},
		{"the text", forbid("run", `resource.text like "cat *"`), "", "deny policies:1: runs cat .env"},
		{"a secret", "// why\n" + forbid("read", "resource.secret"), "", "deny policies:2: reads .env"},
		{"a file by its name", forbid("read", `resource.extension == ".go" && resource.name == "a.go" && !resource.outside`), "", "deny policies:1: reads a.go"},
		{"a file by its directory", `forbid (principal, action == Action::"write", resource in File::"/etc");`, "", "deny policies:1: writes /etc/hosts"},
		{"a file of no known use", forbid("name", `context.dir == File::"`+dir+`" && resource in context.dir`), "", "deny policies:1: names x/y"},
		{"outside", forbid("write", "resource.outside"), "", "deny"},
		{"a host by its domain", `forbid (principal, action == Action::"connect", resource in Host::"example.com");`, "", "deny policies:1: connects to api.example.com"},
		{"not another domain", `forbid (principal, action == Action::"connect", resource in Host::"ample.com");`, "", ""},
		{"the tool", `forbid (principal, action == Action::"call", resource == Tool::"Bash");`, "", "deny policies:1: calls Bash"},
		{"an argument", forbid("call", `resource.hasTag("command") && resource.getTag("command") like "git*" && resource.hasTag("timeout") && resource.getTag("timeout") == "3"`), "", "deny"},
		{"a group", `forbid (principal, action in Action::"tool.pre_call", resource);`, "", "deny policies:1: calls Bash"},
		{"the agent and the person", `forbid (principal == Agent::"claude-code", action, resource) when { principal in User::"ada" && principal.user == "user:ada" };`, "", "deny"},
		{"another person", `forbid (principal in User::"bob", action, resource);`, "", ""},
		{"the whole call", forbid("call", `context.facts.programs.contains("cat") && !context.facts.secrets.isEmpty() && context.mode == "agent"`), "", "deny"},
		{"a policy of the turn", forbid("call", `context.policies.hasTag("guard/level") && context.policies.getTag("guard/level") == "strict"`), "", "deny"},
		{"a question", `@ask("Really?") ` + forbid("run", `resource.program == "cat"`), "", "ask Really? (policies:1: runs cat .env)"},
		{"a question and its reason", `@reason("Others have it.") @ask("Really?") ` + forbid("run", `resource.program == "cat"`), "", "ask Really? Others have it. (policies:1: runs cat .env)"},
		{"deny before ask", `@ask("Really?") ` + forbid("call", "true") + `@reason("No.") @code("house_rule") ` + forbid("run", `resource.program == "cat"`), "", "deny No. (policies:1: runs cat .env)"},
		{"a permit overrides nothing", `permit (principal, action, resource);` + forbid("call", "true"), "", "deny"},
		{"a permit alone", `permit (principal, action, resource);`, "", ""},
		{"no permit", `permit (principal, action in [Action::"call", Action::"read", Action::"name", Action::"connect", Action::"write"], resource);`, "deny", "deny no rule permits it: runs git"},
		{"a permit for all", `permit (principal, action, resource);`, "deny", ""},
		{"an evaluation that fails", "\n" + forbid("connect", `9223372036854775807 + (if resource.local then 0 else 1) == 1`), "", "deny policies:2 could not be evaluated on what connects to api.example.com"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			answer := plugintest.Run(t, cedar.New(), plugintest.Case{
				Hook: "call", Config: rules(t, tt.rules, append([]string{}, strings.Fields(tt.config)...)...), Context: scene(), Input: force(),
				Policies: []phases.PolicyEntry{{Domain: "guard", Key: "level", Value: json.RawMessage(`"strict"`)}},
			})
			checkDecision(t, answer.Contributions, tt.want)
		})
	}
}

// checkDecision compares the one decision of an answer with its verdict and a part of its reason.
func checkDecision(t *testing.T, list phases.Contributions, want string) {
	t.Helper()
	if want == "" {
		if len(list) > 0 {
			t.Errorf("there is a decision: %+v", list[0])
		}
		return
	}
	verdict, reason, _ := strings.Cut(want, " ")
	if len(list) != 1 {
		t.Fatalf("%d contributions, want %s", len(list), want)
	}
	d, ok := list[0].(*phases.Decision)
	if !ok || string(d.Verdict) != verdict || strings.Contains(d.Reason, "policies:") && !strings.HasPrefix(d.ContributionID, "policies:") || !strings.Contains(d.Reason, strings.ReplaceAll(reason, `\"`, `"`)) || !phases.ValidCode(d.ReasonCode) {
		t.Errorf("got %+v, want %s", list[0], want)
	}
}

// TestInputs: MCP tools, what is not known, prompts, what is withheld, and what is too much.
func TestInputs(t *testing.T) {
	t.Parallel()

	call := func(in phases.ToolPreCallInput) *phases.ToolPreCallInput { return &in }
	many := make([]string, 3000)
	for i := range many {
		many[i] = fmt.Sprintf("/%d", i)
	}
	prompt := &phases.PrePolicyInput{UserText: phases.T("drop the tables"), Model: "m"}
	tests := []struct {
		name, hook, rules string
		input             phases.Input
		withhold          []string
		want              string
	}{
		{name: "a server", rules: `forbid (principal, action == Action::"call", resource in Server::"github");`, input: call(phases.ToolPreCallInput{Tool: "mcp__github__search"}), want: "deny"},
		{name: "not known", rules: `forbid (principal, action == Action::"unknown", resource);`, input: call(phases.ToolPreCallInput{Tool: "Bash", Facts: phases.Facts{Unparsed: true, Why: "eval"}}), want: "deny policies:1: does what is not known: eval"},
		{name: "this machine", rules: forbid("connect", "!resource.local"), input: call(phases.ToolPreCallInput{Tool: "Bash", Facts: phases.Facts{Hosts: []string{"localhost", "127.0.0.1", "[::1]", "a.localhost"}}})},
		{name: "a directory with a secret", rules: forbid("read", "resource.secret"), input: call(phases.ToolPreCallInput{Tool: "Grep", Facts: phases.Facts{Reads: []string{dir}, Secrets: []string{dir + "/.env"}}}), want: "deny"},
		{name: "a secret in no file that is named", rules: forbid("read", "resource.secret"), input: call(phases.ToolPreCallInput{Tool: "Bash", Facts: phases.Facts{Secrets: []string{dir + "/.env"}}}), want: "deny policies:1: reads .env"},
		{name: "the directory itself", rules: forbid("write", "context.dir in resource"), input: call(phases.ToolPreCallInput{Tool: "Bash", Facts: phases.Facts{Writes: []string{"/home"}}}), want: "deny"},
		{name: "commands with one text", rules: forbid("run", `resource.options.contains("-r")`), input: call(phases.ToolPreCallInput{Tool: "Bash", Facts: phases.Facts{Commands: []phases.Command{
			{Program: "rm", Words: []string{"rm", "-r", "a"}, Options: []string{"-r"}}, {Program: "rm", Words: []string{"rm", "-r a"}},
		}}}), want: "deny policies:1: runs rm -r a"},
		{name: "too much", rules: forbid("write", "false"), input: call(phases.ToolPreCallInput{Tool: "Bash", Facts: phases.Facts{Writes: many}}), want: "deny this cannot be judged by rules: it does more than 2000 things"},
		{name: "withheld facts", rules: forbid("write", "false"), input: force(), withhold: []string{"facts"}, want: "deny this cannot be judged"},
		{name: "a prompt", hook: "prompt", rules: forbid("prompt", `resource.text like "*drop*" && context.model == "m"`), input: prompt, want: "deny policies:1: says a prompt"},
		{name: "a withheld prompt", hook: "prompt", rules: forbid("prompt", `resource.text like "*drop*"`), input: prompt, withhold: []string{"user_text"}, want: "deny this cannot be judged"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			hook := tt.hook
			if hook == "" {
				hook = "call"
			}
			answer := plugintest.Run(t, cedar.New(), plugintest.Case{Hook: hook, Config: rules(t, tt.rules), Context: scene(), Input: tt.input, Withhold: tt.withhold})
			checkDecision(t, answer.Contributions, tt.want)
		})
	}
}

// TestMistakes: a mistake in the rules has a file, a line and a column, and says what to do.
func TestMistakes(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		``: "there are 0 rules", `// nothing`: "there are 0 rules",
		`forbid (principal, action, resource)`:                                                         `policies:1:37: ";" is missing`,
		"forbid (principal, action == Action::\"read\", resource)\n  when { resource.secrt };":         "policies:2:19: attribute `secrt` on entity type `File` not found (did you mean \"secret\"?)",
		`forbid (principal, action, resource) when { resource.secret };`:                               `; name the action that the rule is about`,
		`forbid (principal, action == Action::"reed", resource);`:                                      "policies:1:39: unrecognized action `Action::\"reed\"` (did you mean \"read\"?)",
		`forbid (principal, action, resource is Flie);`:                                                "policies:1:40: unrecognized entity type `Flie` (did you mean \"File\"?)",
		`forbid (principal, action, resource) if "\"a" { };`:                                           "policies:1:41: \";\" is missing, before `\"\\\"a\"`",
		`forbid (principal, action == Action::"read", resource) when { resource.secret == "x" };`:      "policies:1:1: the types Bool and String are not compatible",
		`forbid (principal, action == Action::"call", resource) when { resource.getTag("q") == "x" };`: "ask before whether it hasTag",
		`/* ; */ forbid (principal, action, resource); "`:                                              "policies:1:47: literal not terminated",
		`@rason("x") forbid (principal, action, resource);`:                                            `policies:1:1: there is no annotation @rason (did you mean "reason"?)`,
		`@ask permit (principal, action, resource);`:                                                   "@ask is for rules that forbid",
		`@code("A B") forbid (principal, action, resource);`:                                           "a code has small letters",
		"\x00": "is not a text in UTF-8",
	} {
		var refused *phases.ConfigError
		if _, err := cedar.New().Configure(t.Context(), &phases.Configuration{Config: json.RawMessage(rules(t, text))}); !errors.As(err, &refused) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	open := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(open, "a.cedar"), nil, 0o600), os.Chmod(open, 0o777)); err != nil {
		t.Fatal(err)
	}
	for files, want := range map[string]string{
		open + "/*": "a.cedar: is in a directory that everybody may change", "rules/*.cedar": "neither an absolute path", t.TempDir() + "/*.cedar": "there is no file", t.TempDir(): "is not a file of at most 4 MiB",
	} {
		var refused *phases.ConfigError
		data := encoded(t, map[string][]string{"files": {files}})
		if _, err := cedar.New().Configure(t.Context(), &phases.Configuration{Config: json.RawMessage(data)}); !errors.As(err, &refused) || refused.Pointer != "/files/0" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", files, err, want)
		}
	}
}

// TestIdle: a rule that can never match is a problem, and so are two of one name, and cases of no verdict.
func TestIdle(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		`forbid (principal, action == Action::"write", resource in File::"generated");`:   `x.cedar:1:65: "generated" never matches: paths are absolute`,
		forbid("write", `resource in [File::"/a", File::"~/keep"]`):                       `"~/keep" never matches`,
		forbid("write", `resource in File::"/srv/"`):                                      `"/srv/" never matches`,
		forbid("write", `resource.path == "a.go"`):                                        `"a.go" never matches`,
		forbid("write", `resource.path like "vendor/*"`):                                  `begin with / or *, as in "*/vendor/*"`,
		forbid("run", `resource.program == "/bin/rm"`):                                    "programs have no directory",
		forbid("run", `["ls", "/bin/rm"].contains(resource.program)`):                     "programs have no directory",
		forbid("read", `resource.extension == "go"`):                                      "extensions have their dot",
		forbid("connect", `resource in Host::"*.example.com"`):                            `resource in Host::"example.com"`,
		`@id("a\"b\n") ` + forbid("run", `resource.program == "/b\"in"`):                  `"/b"in" never matches: programs have no directory`,
		"@id(\"a\") " + forbid("read", "true") + "\n@id(\"a\") " + forbid("read", "true"): `x.cedar:2:1: there is a rule x.cedar:1 "a"`,
	} {
		if got := cedar.Check(t.Context(), "x.cedar", text, "").Problems; len(got) != 1 || !strings.Contains(got[0].String(), want) {
			t.Errorf("%s: %v, want %s", text, got, want)
		}
	}
	fine := forbid("write", `resource in File::"/" || resource.path like "*/vendor/*" || resource.path like "/srv/*" || resource.extension == "" || resource.extension == ".go"`)
	report := cedar.Check(t.Context(), "x.cedar", fine, "Deny Bash ls\nask  Write  vendor/a")
	if got := fmt.Sprint(report.Problems); !strings.Contains(got, "1:1: a case is a verdict (deny, ask or ok)") || len(report.Problems) != 2 ||
		!strings.Contains(got, "x.cases:2:1: want ask, is deny: Write vendor/a — because x.cedar:1: writes vendor/a") {
		t.Error(got)
	}
}

// TestHostile: rules that are huge, deep or many are read, or refused, in bounded time.
func TestHostile(t *testing.T) {
	t.Parallel()

	deep := func(open, middle, end string, n int) string {
		return forbid("call", strings.Repeat(open, n)+middle+strings.Repeat(end, n))
	}
	for name, text := range map[string]string{
		"parentheses": deep("(", "true", ")", 7000), "brackets": deep("[", "1", "]", 7000) + " ", "not": deep("!", "true", "", 15000), "minus": deep("- ", "1", "", 7000),
		"if": deep("if ", "true", " then 1 else 2", 800), "else": deep("if true then true else ", "true", "", 650), "and": deep("true&&", "true", "", 2600),
		"mistakes": deep("resource.x&&", "true", "", 1300), "getTag": deep(`resource.getTag("`, "a", `")==""||true`, 500), "has": deep("context has a.a.a.a.a.a.a.a.a.a.a.a && ", "true", "", 380),
		"a long rule": forbid("call", `"`+strings.Repeat("x", 20_000)+`" == ""`), "a long text": strings.Repeat("/", 5<<20), "quotes": strings.Repeat(`"`, 15_001), "semicolons": strings.Repeat(";", 30_000),
		"comments": strings.Repeat("/*", 500_000), "stars": forbid("call", `context.arguments like "`+strings.Repeat("*a", 7000)+`"`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := cedar.New()
			_, err := p.Configure(t.Context(), &phases.Configuration{Config: json.RawMessage(rules(t, text))})
			if refused := new(phases.ConfigError); err != nil && !errors.As(err, &refused) {
				t.Fatal(err)
			}
			if err != nil {
				return
			}
			in := &phases.ToolPreCallInput{Tool: "Bash", Arguments: json.RawMessage(`{"command":"` + strings.Repeat("ab", 100_000) + `"}`)}
			if _, err := p.Dispatch(t.Context(), &phases.Dispatch{Hook: "call", Phase: phases.ToolPreCall, Input: in}); err != nil {
				t.Error(err)
			}
		})
	}
	many := strings.Repeat(`forbid (principal, action == Action::"run", resource) when { resource.program == "rm" && resource.options.contains("-r") };`+"\n", 10_000)
	if d, err := cedar.New().Configure(t.Context(), &phases.Configuration{Config: json.RawMessage(rules(t, many))}); err != nil || len(d.Hooks) != 1 {
		t.Errorf("10,000 rules: %v", err)
	}
}

// TestHooks: prompts are judged only if a rule names them, the turn's policies are seen only if one looks at them, and all fails closed.
func TestHooks(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		`forbid (principal, action, resource);`:                              "call arguments facts;",
		`forbid (principal, action == Action::"prompt", resource);`:          "call arguments facts;prompt user_text;",
		`forbid (principal, action in Action::"turn.pre_policy", resource);`: "call arguments facts;prompt user_text;",
		forbid("call", `context.policies.hasTag("a")`):                       "call policy arguments facts;",
	} {
		d, err := cedar.New().Configure(t.Context(), &phases.Configuration{Config: json.RawMessage(rules(t, text))})
		if err != nil {
			t.Fatal(err)
		}
		var got strings.Builder
		for _, h := range d.Hooks {
			fmt.Fprintf(&got, "%s %s;", h.Name, strings.Join(h.Needs, " "))
			if h.OnFailure.Default != phases.FailClosed {
				t.Errorf("%s: %+v", h.Name, h)
			}
		}
		if got.String() != want {
			t.Errorf("%s: %s, want %s", text, got.String(), want)
		}
	}
}

// TestReload: a changed file holds from the next call on; one with a mistake leaves the rules as they were, and that is said once a turn.
func TestReload(t *testing.T) {
	t.Parallel()

	file := filepath.Join(t.TempDir(), "a.cedar")
	p := cedar.New()
	at := time.Unix(1, 0)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		at = at.Add(time.Second)
		if err := os.Chtimes(file, at, at); err != nil {
			t.Fatal(err)
		}
	}
	call := func(turn string) phases.Contributions {
		t.Helper()
		res, err := p.Dispatch(t.Context(), &phases.Dispatch{Hook: "call", Phase: phases.ToolPreCall, Input: force(), Context: phases.Context{TurnID: turn}})
		if err != nil {
			t.Fatal(err)
		}
		return res.Contributions
	}
	write(forbid("call", `resource.name == "Bash"`))
	if _, err := p.Configure(t.Context(), &phases.Configuration{Config: json.RawMessage(fmt.Sprintf(`{"files":[%q]}`, file))}); err != nil {
		t.Fatal(err)
	}
	checkDecision(t, call("1"), "deny a.cedar:1: calls Bash")
	write(forbid("call", `resource.name == "Edit"`))
	checkDecision(t, call("1"), "")
	write(`@ask ` + forbid("call", "true"))
	checkDecision(t, call("1"), "ask")

	remark := func(turn, want string) {
		t.Helper()
		list := call(turn)
		checkDecision(t, list[:1], "ask")
		if len(list) != 2 {
			t.Fatalf("turn %s: %d contributions", turn, len(list))
		}
		if m, ok := list[1].(*phases.ManifestDiagnostic); !ok || !strings.Contains(m.Message, want) {
			t.Errorf("%+v, want %s", list[1], want)
		}
	}
	write(`forbid (principal`)
	remark("2", "a.cedar:1:18")
	checkDecision(t, call("2"), "ask")
	write(forbid("prompt", "true"))
	remark("3", "start the gateway again")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	remark("4", "there is no file")
	write(forbid("call", "true"))
	checkDecision(t, call("4"), "deny")
}

// TestSchema: the actions are those of the model, and scenes are what it says.
func TestSchema(t *testing.T) {
	t.Parallel()
	cedar.CompareActions(t)
	cedar.CheckScenes(t, force(), scene())
}

// TestSets: each set does what its cases say, and has nothing against everyday work.
func TestSets(t *testing.T) {
	t.Parallel()

	everyday, err := os.ReadFile(filepath.Join("testdata", "everyday.cases"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range cedar.Sets() {
		rules, cases, ok := cedar.Set(name)
		if !ok {
			t.Fatalf("there is no set %s", name)
		}
		for _, p := range cedar.Check(t.Context(), name+".cedar", rules, string(everyday)).Problems {
			t.Errorf("everyday: %s", p)
		}
		report := cedar.Check(t.Context(), name+".cedar", rules, cases)
		for _, p := range report.Problems {
			t.Error(p)
		}
		if harmless := strings.Count("\n"+cases, "\nok "); harmless < 25 || report.Cases == harmless {
			t.Errorf("%s has %d cases, %d of them harmless", name, report.Cases, harmless)
		}
	}
}

func BenchmarkCall(b *testing.B) {
	var text strings.Builder
	actions := []string{"run", "read", "write", "call"}
	for i := range 100 {
		text.WriteString(forbid(actions[i%4], map[string]string{
			"run": fmt.Sprintf(`resource.program == "p%d" && resource.options.contains("-r")`, i), "read": fmt.Sprintf(`resource.outside && resource.path like "/srv/%d/*"`, i),
			"write": fmt.Sprintf(`resource in File::"/srv/%d"`, i), "call": fmt.Sprintf(`resource.name == "T%d"`, i),
		}[actions[i%4]]))
	}
	p := cedar.New()
	if _, err := p.Configure(b.Context(), &phases.Configuration{Config: json.RawMessage(rules(b, text.String()))}); err != nil {
		b.Fatal(err)
	}
	d := &phases.Dispatch{Hook: "call", Phase: phases.ToolPreCall, Input: force(), Context: scene()}
	b.ReportAllocs()
	for b.Loop() {
		if res, err := p.Dispatch(b.Context(), d); err != nil || len(res.Contributions) > 0 {
			b.Fatal(res, err)
		}
	}
}

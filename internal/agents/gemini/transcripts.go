package gemini

import (
	"bytes"
	"cmp"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/transcript"
)

// transcripts reads what Gemini CLI has in its directory tmp: for each project a directory chats, with a file for each session and
// one for each of its subagents. It was written from files of 0.61.0, which name no version, no compression and no directory: that
// is in a file beside chats. A call is there once it has ended.
func transcripts(a *agent.Agent) *agent.Transcripts {
	return &agent.Transcripts{
		Dirs: transcript.Below("GEMINI_CLI_HOME", ".", ".gemini/tmp"),
		Is:   func(name string) bool { return strings.Contains(name, "/chats/") && path.Ext(name) == ".jsonl" },
		Read: transcript.Lines(a, func(t *transcript.Teller, path string) transcript.Reader {
			above, _, _ := strings.Cut(filepath.ToSlash(path), "/chats/")
			root := filepath.Join(above, ".project_root") // old versions have none
			if info, err := os.Stat(root); err == nil && info.Mode().IsRegular() && info.Size() < transcript.MostText {
				dir, _ := os.ReadFile(root)
				t.Now.Dir = strings.TrimSpace(string(dir))
			}
			return (&reader{Teller: t, parent: filepath.Base(filepath.Dir(path))}).line
		}),
	}
}

// reader reads a file. parent is the session of a subagent. The last that the model said is what it says if it calls nothing.
type reader struct {
	*transcript.Teller

	parent string
}

// refusals are in the results of calls that were refused.
//
//nolint:gochecknoglobals // immutable
var refusals = [][2]string{{"Tool execution blocked: ", "hook"}, {"denied by policy", "policy"}, {"User cancelled", "user"}, {"User did not allow", "user"}}

func (r *reader) line(line transcript.Value) bool {
	session := line.At("sessionId").String()
	r.Now.Model = cmp.Or(line.At("model").String(), r.Now.Model)
	switch kind := line.At("type").String(); {
	case line == nil:
		r.End("AfterAgent")
	case session != "":
		r.Clock(line.At("startTime"))
		r.begin(session, line.At("kind").String())
	case kind == "user":
		r.Clock(line.At("timestamp"))
		r.prompt(cmp.Or(line.At("displayContent").Texts(), line.At("content").Texts()))
	case kind == "gemini":
		r.Clock(line.At("timestamp"))
		r.message(line)
	default: // {"$set": …} changes what was said before
		return kind == "info" || kind == "error" || kind == "warning" || bytes.HasPrefix(line, []byte(`{"$`))
	}
	return true
}

// begin reads whose file it is, or that the session goes on.
func (r *reader) begin(session, kind string) {
	if r.End("AfterAgent"); r.Now.SessionID != "" {
		r.Event("SessionStart", agent.Payload{Source: "resume"})
		return
	}
	if r.Now.SessionID = session; kind == "subagent" {
		r.Now.SessionID, r.Now.AgentID = r.parent, session
	}
	r.Begin()
}

// prompt reads a text in the user's place, which may be the task of a subagent.
func (r *reader) prompt(text string) {
	if text != "" && r.Now.AgentID == "" && !strings.HasPrefix(text, "<session_context>") {
		r.End("AfterAgent")
		r.Event("BeforeAgent", agent.Payload{Prompt: text})
	}
}

// message reads what the model says. It is written once more when it has the results of its calls.
func (r *reader) message(line transcript.Value) {
	r.Last = line.At("content").Texts()
	calls := line.At("toolCalls").List()
	for _, c := range calls {
		if id := c.At("id").String(); r.First(id) {
			r.Call("BeforeTool", id, c.At("name").String(), c.At("args"))
		}
	}
	for _, c := range calls {
		r.Last = ""
		r.result(c)
	}
}

// result reads what came of a call.
func (r *reader) result(c transcript.Value) {
	res := transcript.Result{Became: agent.Ran}
	for _, part := range c.At("result").List() {
		response := part.At("functionResponse", "response")
		res.Text += response.At("output").String() + response.At("error").String()
		res.Failed = res.Failed || response.At("error") != nil
	}
	if status := c.At("status").String(); status != "success" {
		res.Became = agent.Failed
		if !res.Refusal(refusals) && status == "cancelled" {
			res.Became, res.By = agent.Refused, "user"
		}
	}
	if id := c.At("id").String(); r.Tool(id) != "" {
		r.Result("AfterTool", id, res)
	}
}

package gemini

import (
	"bytes"
	"cmp"
	"encoding/json"
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
			root, _ := os.ReadFile(filepath.Join(above, ".project_root")) // old versions have none
			t.Now.Dir = transcript.Cut(strings.TrimSpace(string(root)))
			return (&reader{Teller: t, parent: filepath.Base(filepath.Dir(path))}).line
		}),
	}
}

// reader reads a file. parent is the session of a subagent, and last what the model says if it calls nothing.
type reader struct {
	*transcript.Teller

	parent, last string
}

// record is a line with a message, or with the session.
type record struct {
	Session string          `json:"sessionId"`
	Kind    string          `json:"kind"`
	Start   string          `json:"startTime"`
	ID      string          `json:"id"`
	Time    string          `json:"timestamp"`
	Type    string          `json:"type"`
	Model   string          `json:"model"`
	Shown   json.RawMessage `json:"displayContent"` // what the user has written
	Content json.RawMessage `json:"content"`
	Calls   []struct {
		ID     string          `json:"id"`
		Name   string          `json:"name"`
		Args   json.RawMessage `json:"args"`
		Status string          `json:"status"`
		Result []struct {
			Response struct {
				Response struct {
					Output string `json:"output"`
					Error  string `json:"error"`
				} `json:"response"`
			} `json:"functionResponse"`
		} `json:"result"`
	} `json:"toolCalls"`
}

// refusals are in the results of calls that were refused.
//
//nolint:gochecknoglobals // immutable
var refusals = [][2]string{{"Tool execution blocked: ", "hook"}, {"denied by policy", "policy"}, {"User cancelled", "user"}, {"User did not allow", "user"}}

func (r *reader) line(line []byte) bool {
	var rec record
	switch {
	case line == nil:
		r.stop()
		return true
	case bytes.HasPrefix(line, []byte(`{"$`)): // it changes what was said before
		return true
	case !transcript.Decode(line, &rec):
		return false
	}
	r.At, r.Now.Model = transcript.ParseTime(cmp.Or(rec.Time, rec.Start)), cmp.Or(rec.Model, r.Now.Model)
	switch rec.Type {
	case "":
		return r.begin(&rec)
	case "user":
		r.prompt(transcript.Texts(rec.Content), transcript.Texts(rec.Shown))
	case "gemini":
		r.message(&rec)
	}
	return rec.Type == "user" || rec.Type == "gemini" || rec.Type == "info" || rec.Type == "error" || rec.Type == "warning"
}

// begin reads whose file it is, or that the session goes on.
func (r *reader) begin(rec *record) bool {
	if r.stop(); r.Now.SessionID != "" && rec.Session != "" {
		r.Event("SessionStart", agent.Payload{Source: "resume"})
	} else if r.Now.SessionID = rec.Session; rec.Kind == "subagent" {
		r.Now.SessionID, r.Now.AgentID = r.parent, rec.Session
	}
	r.Begin()
	return rec.Session != ""
}

// prompt reads a text in the user's place: that of a user, a result, or the task of a subagent.
func (r *reader) prompt(text, shown string) {
	if text = cmp.Or(shown, text); text != "" && r.Now.AgentID == "" && !strings.HasPrefix(text, "<session_context>") {
		r.stop()
		r.Event("BeforeAgent", agent.Payload{Prompt: text})
	}
}

// message reads what the model says. It is written once more when it has the results of its calls.
func (r *reader) message(rec *record) {
	r.last = transcript.Texts(rec.Content)
	for i := range rec.Calls {
		if c := &rec.Calls[i]; r.First(c.ID) {
			r.Call("BeforeTool", c.ID, c.Name, c.Args)
		}
	}
	for i := range rec.Calls {
		c, res := &rec.Calls[i], transcript.Result{Became: agent.Ran}
		for _, part := range c.Result {
			response := part.Response.Response
			res.Text, res.Failed = res.Text+response.Output+response.Error, res.Failed || response.Error != ""
		}
		if c.Status != "success" {
			res.Became = agent.Failed
			if !res.Refusal(refusals) && c.Status == "cancelled" {
				res.Became, res.By = agent.Refused, "user"
			}
		}
		if r.last = ""; r.Tool(c.ID) != "" {
			r.Result("AfterTool", c.ID, res)
		}
	}
}

// stop ends the turn if the model has said something behind its last calls.
func (r *reader) stop() {
	if r.last != "" {
		r.Stop("AfterAgent", r.last)
	}
	r.last = ""
}

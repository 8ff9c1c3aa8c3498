package opencode

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"iter"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/transcript"
)

// transcripts reads opencode's database, in the shape of 1.18.33. The SQLite driver is the program's, by the name "sqlite": others
// that describe agents, such as plugins, do not link one. What a hook refuses is an error of the call there, like any other.
func transcripts(a *agent.Agent) *agent.Transcripts {
	return &agent.Transcripts{
		Dirs: transcript.Below("XDG_DATA_HOME", ".local/share", "opencode"),
		Is:   func(name string) bool { is, _ := path.Match("opencode*.db", name); return is },
		Read: func(path string) iter.Seq2[*agent.Said, error] {
			return transcript.Tell(a, func(t *transcript.Teller) error { return (&reader{Teller: t}).database(path) })
		},
	}
}

// query has a row for each part of a message, in their order; the indexes of opencode's tables give that.
const query = `SELECT m.id, iif(length(m.data) <= ?2, m.data, ''), iif(length(p.data) <= ?2, p.data, ''), p.time_created
	FROM message m JOIN part p ON p.message_id = m.id WHERE m.session_id = ?1 ORDER BY m.time_created, m.id, p.id`

// reader reads a database. prompt and last are what the user and the assistant said in the message.
type reader struct {
	*transcript.Teller

	prompt, last string
}

// database reads the sessions, and writes nothing: neither to the database nor beside it. While opencode runs, what it has in its log
// is read too.
func (r *reader) database(path string) error {
	mode := "immutable=1"
	if _, err := os.Stat(path + "-shm"); err == nil {
		mode = "mode=ro&readonly_shm=1"
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: filepath.ToSlash(abs)}).EscapedPath()+"?"+mode)
	if err != nil {
		return err
	}
	defer db.Close()
	return each(db, "SELECT id, coalesce(parent_id, ''), directory, version, time_created FROM session ORDER BY time_created, id", nil, func(scan func(...any) error) error {
		var at int64
		r.Now = agent.Payload{}
		if err := scan(&r.Now.SessionID, &r.Parent, &r.Now.Dir, &r.Version, &at); err != nil || r.Done {
			return err
		}
		r.At = time.UnixMilli(at)
		r.Begin()
		err := each(db, query, []any{r.Now.SessionID, transcript.MostLine}, r.row)
		r.message()
		return err
	})
}

// each reads rows.
func each(db *sql.DB, query string, args []any, row func(scan func(...any) error) error) (err error) {
	rows, err := db.QueryContext(context.Background(), query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for err == nil && rows.Next() {
		err = row(rows.Scan)
	}
	return errors.Join(err, rows.Err())
}

// said is the data of a message, and part that of a part.
type (
	said struct {
		Role  string `json:"role"`
		Model string `json:"modelID"`
		Of    struct {
			Model string `json:"modelID"`
		} `json:"model"`
		Path struct {
			Dir string `json:"cwd"`
		} `json:"path"`
		Finish string `json:"finish"`
	}
	part struct {
		Type      string `json:"type"`
		Text      string `json:"text"`
		Synthetic bool   `json:"synthetic"`
		Auto      bool   `json:"auto"`
		Tool      string `json:"tool"`
		ID        string `json:"callID"`
		State     struct {
			Status string          `json:"status"`
			Input  json.RawMessage `json:"input"`
			Output string          `json:"output"`
			Error  string          `json:"error"`
			Meta   struct {
				Exit int `json:"exit"`
			} `json:"metadata"`
			Time struct {
				Start int64 `json:"start"`
				End   int64 `json:"end"`
			} `json:"time"`
		} `json:"state"`
	}
)

// refusals are the errors of calls that were refused.
//
//nolint:gochecknoglobals // immutable
var refusals = [][2]string{{"The user rejected", "user"}, {"The user has specified a rule", "rule"}}

// row reads a part.
func (r *reader) row(scan func(...any) error) error {
	var id, message, data string
	var at int64
	if err := scan(&id, &message, &data, &at); err != nil || r.Done {
		return err
	}
	var m said
	var p part
	if !transcript.Decode([]byte(message), &m) || !transcript.Decode([]byte(data), &p) {
		r.Unknown()
		return nil
	}
	if r.Turn != id {
		r.message()
	}
	r.Turn, r.At = id, time.UnixMilli(at)
	r.Now.Dir, r.Now.Model = cmp.Or(m.Path.Dir, r.Now.Dir), cmp.Or(m.Model, m.Of.Model)
	switch {
	case p.Type == "tool":
		r.call(&p)
	case p.Type == "compaction":
		r.Event("PostCompact", agent.Payload{Trigger: map[bool]string{true: "auto", false: "manual"}[p.Auto]})
	case p.Type == "text" && m.Role == "user" && !p.Synthetic:
		r.prompt += p.Text
	case p.Type == "text" && m.Role == "assistant" && m.Finish != "tool-calls":
		r.last += p.Text
	}
	return nil
}

// message ends a message.
func (r *reader) message() {
	if r.prompt != "" {
		r.Event("UserPromptSubmit", agent.Payload{Prompt: r.prompt})
	}
	if r.last != "" {
		r.Stop("Stop", r.last)
	}
	r.prompt, r.last = "", ""
}

// call reads a call, and what came of it.
func (r *reader) call(p *part) {
	s := &p.State
	r.At = time.UnixMilli(max(s.Time.Start, r.At.UnixMilli()))
	r.Call("PreToolUse", p.ID, p.Tool, s.Input)
	if s.Status != "completed" && s.Status != "error" {
		return
	}
	res := transcript.Result{Text: s.Output + s.Error, Became: agent.Ran, Failed: s.Status == "error"}
	if res.Failed || s.Meta.Exit != 0 {
		res.Became = agent.Failed
		res.Refusal(refusals)
	}
	r.At = time.UnixMilli(max(s.Time.End, r.At.UnixMilli()))
	r.Result("PostToolUse", p.ID, res)
}

package opencode

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"iter"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
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

// reader reads a database. prompt is what the user said in a message.
type reader struct {
	*transcript.Teller

	id, prompt string
}

// database reads the sessions, and writes nothing: neither to the database nor beside it. While opencode runs, what it has in its log
// is read too.
func (r *reader) database(path string) error {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return cmp.Or(err, errors.New(path+" is not a regular file"))
	}
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
	defer func() { _ = db.Close() }() // it is only read
	return each(db, "SELECT id, coalesce(parent_id, ''), directory, version, time_created FROM session ORDER BY time_created, id", nil, func(scan func(...any) error) error {
		var at int64
		r.Now, r.Turn = agent.Payload{}, ""
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

//nolint:gochecknoglobals // immutable
var (
	// unimportant are the types of parts that no hook is told of, and refusals are the errors of calls that were refused.
	unimportant = strings.Fields("text reasoning step-start step-finish snapshot patch file agent subtask retry")
	refusals    = [][2]string{{"The user rejected", "user"}, {"The user has specified a rule", "rule"}}
)

// row reads a part.
func (r *reader) row(scan func(...any) error) error {
	var id string
	var m, p transcript.Value
	var at int64
	if err := scan(&id, (*[]byte)(&m), (*[]byte)(&p), &at); err != nil || r.Done {
		return err
	}
	if r.id != id {
		r.message()
	}
	r.id, r.At = id, time.UnixMilli(at)
	r.Now.Dir, r.Now.Model = cmp.Or(m.At("path", "cwd").String(), r.Now.Dir), cmp.Or(m.At("modelID").String(), m.At("model", "modelID").String())
	text, isUser := p.At("text").String(), m.At("role").String() == "user"
	if isUser {
		r.Turn = id
	}
	switch kind := p.At("type").String(); {
	case kind == "tool":
		r.call(p)
	case kind == "compaction":
		r.Event("PostCompact", agent.Payload{Trigger: map[bool]string{true: "auto", false: "manual"}[p.At("auto").Is()]})
	case kind == "text" && isUser && !p.At("synthetic").Is():
		r.prompt = transcript.Cut(r.prompt + text)
	case kind == "text" && !isUser && m.At("finish").String() != "tool-calls":
		r.Last = transcript.Cut(r.Last + text)
	case !slices.Contains(unimportant, kind):
		r.Unknown()
	}
	return nil
}

// message ends a message.
func (r *reader) message() {
	if r.prompt != "" {
		r.Event("UserPromptSubmit", agent.Payload{Prompt: r.prompt})
	}
	r.End("Stop")
	r.prompt = ""
}

// call reads a call, and what came of it.
func (r *reader) call(p transcript.Value) {
	s, id := p.At("state"), p.At("callID").String()
	r.At = time.UnixMilli(max(s.At("time", "start").Int(), r.At.UnixMilli()))
	r.Call("PreToolUse", id, p.At("tool").String(), s.At("input"))
	status := s.At("status").String()
	if status != "completed" && status != "error" {
		return
	}
	res := transcript.Result{Text: s.At("output").String() + s.At("error").String(), Became: agent.Ran, Failed: status == "error"}
	if res.Failed || s.At("metadata", "exit").Int() != 0 {
		res.Became = agent.Failed
		res.Refusal(refusals)
	}
	r.At = time.UnixMilli(max(s.At("time", "end").Int(), r.At.UnixMilli()))
	r.Result("PostToolUse", id, res)
}

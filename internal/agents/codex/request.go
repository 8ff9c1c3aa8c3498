package codex

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/transcript"
	"github.com/grapnelhq/grapnel/internal/owned"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

const (
	name      = "codex"
	mostRead  = 16 << 20 // of a rollout, for one request
	mostCalls = 1024     // without a result
)

var (
	filesBegin = lazyregexp.New(`\A# AGENTS\.md instructions for (.+)\n\n<INSTRUCTIONS>\n`)
	filesEnd   = lazyregexp.New(`\n</INSTRUCTIONS>\s*\z`)
)

// sentReader reads what was sent. sent is how far, and messages how many parts, up to the last that is not the model's: the answer
// may be there already.
type sentReader struct {
	request   compiler.Request
	now, sent agent.Reading
	messages  int
}

// readRequest reads the request that an event is about from the session's rollout, which has all but the tools before Codex sends it.
func readRequest(e *agent.Event, from agent.Reading) (*compiler.Request, agent.Reading, error) {
	file, err := openRollout(e.Kept)
	if err != nil {
		return nil, from, err
	}
	defer func() { _ = file.Close() }() // it is only read
	if from.Path != e.Kept {
		from = agent.Reading{Path: e.Kept}
	}
	from.Calls = maps.Clone(from.Calls)
	if from.Calls == nil {
		from.Calls = map[string]string{}
	}
	r := &sentReader{request: compiler.Request{Agent: name}, now: from, sent: from}
	r.request.History.Same = from.History.Entries
	head, err := bufio.NewReader(io.NewSectionReader(file, 0, mostRead)).ReadBytes('\n')
	if err != nil {
		return nil, from, err
	}
	meta := transcript.Value(head).At("payload")
	if id := meta.At("id").String(); id != cmp.Or(e.AgentID, e.SessionID) {
		return nil, from, fmt.Errorf("%s is of the session %q", e.Kept, id)
	}
	e.Provider = meta.At("model_provider").String()
	if text := meta.At("base_instructions", "text").String(); text != "" {
		r.request.System = []compiler.RequestPart{{ID: "base_instructions", Title: "base_instructions", Owner: name, Stability: phases.StabilityStable, Text: text}}
	}
	data, err := io.ReadAll(io.NewSectionReader(file, from.Offset, mostRead+1))
	if err == nil && len(data) > mostRead {
		err = fmt.Errorf("%s has more than %d bytes that were not read", e.Kept, mostRead)
	}
	if err != nil {
		return nil, from, err
	}
	for line := range bytes.Lines(data) {
		if bytes.HasSuffix(line, []byte("\n")) { // otherwise it is being written
			r.line(bytes.TrimSpace(line), int64(len(line)))
		}
	}
	if r.sent.Lost != "" {
		return nil, r.sent, errors.New(r.sent.Lost)
	}
	r.request.Messages, r.request.History.Entries, r.request.History.Hash = r.request.Messages[:r.messages], r.sent.History.Entries, r.sent.History.Hash
	e.Facts = append(e.Facts, manifest.HostFact{Name: "read_from", Value: "rollout"}, agent.NotSeen("tools"))
	return &r.request, r.sent, nil
}

// openRollout opens a file of this user's in the directory of sessions.
func openRollout(path string) (*os.File, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	dir := transcript.Below("CODEX_HOME", ".codex", "sessions")(home, os.Getenv)[0]
	below, err := filepath.Rel(dir, path)
	if err != nil || !filepath.IsLocal(below) {
		return nil, fmt.Errorf("%s is not below %s: start the gateway with the CODEX_HOME of Codex", path, dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	file, err := root.OpenFile(below, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe is not waited for
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err == nil {
		if _, other := owned.Other(info); other {
			err = fmt.Errorf("%s belongs to another user", path)
		}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// line reads a line of a length.
func (r *sentReader) line(line transcript.Value, length int64) {
	r.now.Offset += length
	p, kept := line.At("payload"), false
	switch kind := line.At("type").String(); {
	case kind == "response_item":
		kept = r.item(p)
	case kind == "compacted":
		r.now.History, r.now.Lost, r.request.History.Same, r.request.Messages, kept = manifest.History{}, "", 0, nil, true
		for _, item := range p.At("replacement_history").List() {
			r.item(item)
		}
	case p.At("type").String() == "thread_rolled_back":
		r.now.Lost, kept = "the conversation was rolled back: what is sent is known again when it is compacted", true
	}
	if kept {
		r.sent, r.messages = r.now, len(r.request.Messages)
	}
}

// item adds an item of the conversation, and reports whether it is something that the model did not say itself.
func (r *sentReader) item(p transcript.Value) (toModel bool) {
	part := compiler.RequestPart{ID: p.At("call_id").String(), Kind: p.At("type").String(), Role: "assistant", Message: r.now.History.Entries, Owner: agent.OfModel}
	first := len(r.request.Messages)
	switch {
	case part.Kind == "message":
		part.Role = p.At("role").String()
		r.message(p, part)
	case strings.HasSuffix(part.Kind, "_output"):
		part.Role, part.Owner = "tool", agent.ToolOwner(name, r.now.Calls[part.ID], "mcp__", "__")
		part.Text = cmp.Or(p.At("output").Texts(), p.At("output", "content").String(), string(p.At("output")))
		delete(r.now.Calls, part.ID)
		r.request.Messages = append(r.request.Messages, part)
	default:
		tool := p.At("name").String()
		if namespace := p.At("namespace").String(); namespace != "" {
			tool = namespace + "__" + tool
		}
		if len(r.now.Calls) == mostCalls {
			clear(r.now.Calls)
		}
		r.now.Calls[part.ID] = tool
		part.Text = strings.TrimSpace(tool + " " + cmp.Or(p.At("arguments").String(), p.At("input").String(), string(p.At("action")),
			p.At("summary").Texts()+p.At("encrypted_content").String()))
		r.request.Messages = append(r.request.Messages, part)
	}
	h := &r.now.History
	for _, added := range r.request.Messages[first:] {
		h.Hash = manifest.Hash(h.Hash+added.Text, nil)
	}
	h.Entries++
	return part.Role != "assistant"
}

// message adds a message, with what Codex says of where its texts are from.
func (r *sentReader) message(p transcript.Value, part compiler.RequestPart) {
	said := p.At("internal_chat_message_metadata_passthrough")
	kinds, from := said.At("content_item_kinds").List(), said.At("content_item_metadata").List()
	for i, c := range p.At("content").List() {
		q := part
		q.Kind, q.Text = "text", cmp.Or(c.At("text").String(), c.At("image_url").String())
		if part.Role != "assistant" {
			q.Owner = name
			if i < len(kinds) {
				q.Kind = kinds[i].String()
			}
			switch source := (transcript.Value)(nil); {
			case i < len(from):
				if source = from[i].At("provenance"); source.At("type").String() == agent.OfUser {
					q.Owner = agent.OfUser
				} else if source.At("hook").Is() {
					q.Owner = "hook"
				}
			case part.Role == agent.OfUser:
				q.Owner = agent.OfUser
			}
		}
		r.request.Messages = append(r.request.Messages, agent.WithFiles(q, filesBegin(), filesEnd())...)
	}
}

package codex

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/internal/agents/agent"
	"github.com/grapnelhq/grapnel/internal/agents/claudecode"
	"github.com/grapnelhq/grapnel/internal/agents/transcript"
	"github.com/grapnelhq/grapnel/internal/owned"
	"github.com/grapnelhq/grapnel/internal/text/lazyregexp"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

const mostRead, mostCalls = 16 << 20, 1024 // of a rollout, for one request; without a result

var file = lazyregexp.New(`(?s)\A# AGENTS\.md instructions for ([^\n]+)\n\n<INSTRUCTIONS>\n(.*)\n</INSTRUCTIONS>`)

// sent reads what was sent: up to seen, with so many parts of messages. The answer is behind that, as far as it is there.
type sent struct {
	request   compiler.Request
	now, seen agent.Reading
	messages  int
}

// readRequest reads the request that an event is about from the session's rollout, where Codex writes all but the tools before.
func readRequest(e *agent.Event, from agent.Reading) (*compiler.Request, agent.Reading) {
	if from.Path != e.Kept {
		from = agent.Reading{Path: e.Kept, Calls: map[string]string{}}
	}
	s := &sent{request: compiler.Request{Agent: name, History: manifest.History{Same: from.History.Entries}}, now: from, seen: from}
	if err := s.read(e); err != nil {
		from.Lost = err.Error()
		return nil, from
	}
	r := &s.request
	r.Messages, r.History.Entries, r.History.Hash = r.Messages[:s.messages], s.seen.History.Entries, s.seen.History.Hash
	e.Facts = append(agent.NotSeen("tools; what Codex leaves out of base_instructions"), manifest.HostFact{Name: "read_from", Value: "rollout"})
	return r, s.seen
}

func (s *sent) read(e *agent.Event) error {
	rollout, err := open(e)
	if err != nil {
		return err
	}
	defer func() { _ = rollout.Close() }() // it is only read
	head, err := bufio.NewReader(io.NewSectionReader(rollout, 0, mostRead)).ReadBytes('\n')
	if err != nil {
		return err
	}
	meta := transcript.Value(head).At("payload")
	if id := meta.At("id").String(); id != cmp.Or(e.AgentID, e.SessionID) {
		return fmt.Errorf("%s is of the session %q", e.Kept, id)
	}
	e.Provider = meta.At("model_provider").String()
	if text := meta.At("base_instructions", "text").String(); text != "" {
		s.request.System = []compiler.RequestPart{{ID: "base_instructions", Title: "base_instructions", Owner: name, Stability: phases.StabilityStable, Text: text}}
	}
	data, err := io.ReadAll(io.NewSectionReader(rollout, s.now.Offset, mostRead+1))
	if err != nil || len(data) > mostRead {
		return cmp.Or(err, fmt.Errorf("%s has more than %d bytes that were not read", e.Kept, mostRead))
	}
	for line := range bytes.Lines(data[:bytes.LastIndexByte(data, '\n')+1]) { // the last one may be half written
		s.line(line)
	}
	return nil
}

// open opens a regular file of this user's in the directory of sessions.
func open(e *agent.Event) (*os.File, error) {
	home, homeless := os.UserHomeDir()
	dir := e.Agent.Transcripts.Dirs(home, os.Getenv)[0]
	below, outside := filepath.Rel(dir, e.Kept)
	info, err := os.Stat(e.Kept)
	if err = cmp.Or(homeless, outside, err); err != nil {
		return nil, err
	}
	if _, other := owned.Other(info); other || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file of yours", e.Kept)
	}
	return os.OpenInRoot(dir, below)
}

func (s *sent) line(line transcript.Value) {
	p, ofModel := line.At("payload"), true
	s.now.Offset += int64(len(line))
	switch kind := line.At("type").String(); {
	case kind == "response_item":
		ofModel = s.item(p)
	case kind == "compacted", p.At("type").String() == "thread_rolled_back": // and what is left is not said
		s.now.History, s.request.History.Same, s.request.Messages, ofModel = manifest.History{}, 0, nil, false
		for _, item := range p.At("replacement_history").List() {
			s.item(item)
		}
	}
	if !ofModel {
		s.seen, s.messages = s.now, len(s.request.Messages)
	}
}

// item adds an item of the conversation, and reports whether it is the model's.
func (s *sent) item(p transcript.Value) (ofModel bool) {
	part := compiler.RequestPart{ID: p.At("call_id").String(), Kind: p.At("type").String(), Role: "assistant", Message: s.now.History.Entries, Owner: "model"}
	parts := []compiler.RequestPart{part}
	switch q := &parts[0]; {
	case part.Kind == "message":
		part.Role = p.At("role").String()
		parts = texts(p, part)
	case strings.HasSuffix(part.Kind, "_output"):
		part.Role, q.Role, q.Owner = "tool", "tool", claudecode.ToolOwner(name, s.now.Calls[q.ID], nil)
		q.Text = cmp.Or(p.At("output").Texts(), string(p.At("output")))
		delete(s.now.Calls, q.ID)
	default:
		tool := strings.TrimPrefix(p.At("namespace").String()+"__"+p.At("name").String(), "__")
		if len(s.now.Calls) < mostCalls {
			s.now.Calls[q.ID] = tool
		}
		q.Text = tool + " " + cmp.Or(p.At("arguments").String(), p.At("input").String(), p.At("summary").Texts()+p.At("encrypted_content").String())
	}
	for i := range parts {
		s.now.History.Hash = manifest.Hash(s.now.History.Hash+parts[i].Text, nil)
	}
	s.now.History.Entries++
	s.request.Messages = append(s.request.Messages, parts...)
	return part.Role == "assistant"
}

// texts are those of a message, with what Codex says of where they are from.
func texts(p transcript.Value, part compiler.RequestPart) (parts []compiler.RequestPart) {
	said, none := p.At("internal_chat_message_metadata_passthrough"), make([]transcript.Value, len(p.At("content").List()))
	kinds, from := append(said.At("content_item_kinds").List(), none...), append(said.At("content_item_metadata").List(), none...)
	for i, c := range p.At("content").List() {
		part.Kind, part.Text = "text", cmp.Or(c.At("text").String(), c.At("image_url").String())
		if part.Role != "assistant" {
			part.Kind, part.Owner = cmp.Or(kinds[i].String(), part.Kind), name
			switch source := from[i].At("provenance"); {
			case source.At("type").String() == "user", source == nil && part.Role == "user":
				part.Owner = "user"
			case source.At("hook").Is():
				part.Owner = "hook"
			}
		}
		parts = append(parts, agent.WithFiles(part, file())...)
	}
	return parts
}

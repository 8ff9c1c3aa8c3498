package agentsdoc

import (
	"bytes"
	"cmp"
	"compress/flate"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/chain"
	"github.com/grapnelhq/grapnel/plugins/agentsdoc/lazy"
	"github.com/grapnelhq/grapnel/sdk"
)

// stateService is the host service that keeps a session's state.
const stateService = "state"

const (
	// storedSchema is the version of what is kept.
	storedSchema = 1
	// maxStored is what the service takes of one value.
	maxStored = 64 << 10
	// maxText bounds what comes out of a compressed text.
	maxText = 4 << 20
)

// stored is a session as the host keeps it, so that another process goes on
// where this one was.
type stored struct {
	Schema int `json:"schema"`
	// Options is the hash of the settings that it was made under.
	Options string `json:"options"`
	Epoch   int    `json:"epoch"`
	// Dir is the working folder of the block in force, and From the one whose
	// files are in it, if that is another: a sub-task has its parent's.
	Dir  string `json:"dir"`
	From string `json:"from,omitempty"`
	// Block is its contribution, JSON, compressed; nothing where it is too long
	// to be kept.
	Block []byte `json:"block,omitempty"`
	Chars int    `json:"chars,omitempty"`
	// Said counts the messages, so that one which is said again is known to be
	// another.
	Said int `json:"said,omitempty"`
	// Nested is a [lazy.State].
	Nested json.RawMessage `json:"nested"`
}

// recall asks the host once for what it has of a session.
func (d *docs) recall(ctx context.Context, call *sdk.Call, s *session) {
	if s.read || !s.key.kept() {
		return
	}
	s.read = true
	if !d.keeps {
		return
	}
	answer, err := call.Host.Call(ctx, stateService, "get", s.key.params(nil))
	if err != nil {
		s.read = ctx.Err() == nil // with another turn it may answer
		s.remark(codeStateNotKept, phases.SeverityWarning, "what was said in the session cannot be read from the host: "+string(phases.CodeOf(err)))
		return
	}
	var got struct {
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(answer, &got); err == nil && len(got.Value) > 0 && string(got.Value) != "null" {
		d.take(s, got.Value)
	}
}

// params are the parameters of a call of the service; value is nil for get.
func (k sessionKey) params(value json.RawMessage) json.RawMessage {
	data, err := json.Marshal(struct {
		Workspace string          `json:"workspace_id,omitempty"`
		Session   string          `json:"session_id"`
		Value     json.RawMessage `json:"value,omitempty"`
	}{k.workspace, k.session, value})
	if err != nil {
		return nil // the service refuses it; a value that is no JSON was made by nobody
	}
	return data
}

// take goes on with what was kept. What cannot be read, or was made under other
// settings, is as if there were none: the session begins a new epoch.
func (d *docs) take(s *session, value json.RawMessage) {
	kept, nested, err := decodeStored(value)
	if err != nil {
		s.remark(codeStateDamaged, phases.SeverityWarning, "what was kept of the session is not used: "+err.Error())
		return
	}
	s.said = max(s.said, kept.Said)
	if kept.Options != d.sum || d.reloaded {
		return
	}
	s.renew(kept.Epoch)
	s.nested = nested
	if b, err := inflate(kept); err == nil && b != nil {
		s.keep(kept.Dir, b)
	}
	s.dirty.Store(true) // nobody has watched
}

// decodeStored reads what was kept.
func decodeStored(value json.RawMessage) (stored, *lazy.State, error) {
	var kept stored
	if err := json.Unmarshal(value, &kept); err != nil {
		return kept, nil, err
	}
	if kept.Schema != storedSchema {
		return kept, nil, fmt.Errorf("its schema is %d, and this plugin knows %d", kept.Schema, storedSchema)
	}
	nested, err := lazy.Decode(kept.Nested)
	if err != nil {
		return kept, nil, err
	}
	return kept, &nested, nil
}

// persist gives the host what is to be known of a session.
func (d *docs) persist(ctx context.Context, call *sdk.Call, s *session) {
	if !s.key.kept() {
		return
	}
	if !d.keeps {
		s.remark(codeStateNotKept, phases.SeverityInfo, "what was said in the session is known to this process alone: the plugin is not granted the host service state")
		return
	}
	value := json.RawMessage("null")
	if s.nested != nil {
		value = d.encode(s)
	}
	if _, err := call.Host.Call(ctx, stateService, "put", s.key.params(value)); err != nil {
		s.remark(codeStateNotKept, phases.SeverityWarning, "what was said in the session is known to this process alone: "+string(phases.CodeOf(err)))
	}
}

// encode makes what is kept. Where it is too long, the text of the block goes:
// another process then looks afresh, and says what changed.
func (d *docs) encode(s *session) json.RawMessage {
	nested, err := lazy.Encode(*s.nested)
	if err != nil {
		return json.RawMessage("null") // of plain data
	}
	kept := stored{Schema: storedSchema, Options: d.sum, Epoch: s.epoch, Said: s.said, Nested: nested}
	if b := s.latest(); b != nil {
		kept.Dir, kept.Chars, kept.Block = s.dir(), b.chars, deflate(b)
		if b.found.Dir != filepath.Clean(kept.Dir) {
			kept.From = b.found.Dir
		}
	}
	data, err := json.Marshal(kept)
	if len(data) > maxStored {
		s.remark(codeStateTooLong, phases.SeverityInfo, "the instruction text is too long to be kept by the host")
		kept.Block = nil
		data, err = json.Marshal(kept)
	}
	if err != nil {
		return json.RawMessage("null") // of plain data
	}
	return data
}

// deflate compresses what a block says.
func deflate(b *block) []byte {
	list := phases.Contributions{}
	if b.contribution != nil {
		list = append(list, b.contribution)
	}
	data, err := json.Marshal(list)
	if err != nil {
		return nil
	}
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestSpeed)
	if err != nil {
		return nil
	}
	if _, err := w.Write(data); err != nil || w.Close() != nil {
		return nil
	}
	return out.Bytes()
}

// inflate makes a block of what was kept; nil where no text was.
func inflate(kept stored) (*block, error) {
	if len(kept.Block) == 0 {
		return nil, nil
	}
	data, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(kept.Block)), maxText))
	if err != nil {
		return nil, err
	}
	var list phases.Contributions
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, err
	}
	b := &block{chars: kept.Chars, found: chain.Chain{Dir: cmp.Or(kept.From, kept.Dir)}}
	if len(list) > 0 {
		b.contribution = list[0]
		rows := b.contribution.Head().Diagnostics
		for i := range rows {
			rows[i].SafeForUser = true // JSON does not say so; see diagnostics
		}
	}
	return b, nil
}

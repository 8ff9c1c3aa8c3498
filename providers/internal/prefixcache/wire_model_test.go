package prefixcache

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"
)

// defaultLife is that of a mark which names none.
const defaultLife = 5 * time.Minute

// AnthropicBlocks reads the body of a request to Anthropic's Messages API.
// Members that are no part of the prompt are passed over. count counts tokens: of
// texts as they are, of all other blocks as JSON.
func AnthropicBlocks(body []byte, count func(string) int) ([]Block, error) {
	var r struct {
		Tools    []json.RawMessage `json:"tools"`
		System   json.RawMessage   `json:"system"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Mark *mark `json:"cache_control"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("anthropic request: %w", err)
	}
	b := reader{count: count}
	b.all("tools", r.Tools)
	b.list("system", r.System)
	for _, m := range r.Messages {
		b.list(m.Role, m.Content)
	}
	if n := len(b.blocks); r.Mark != nil && n > 0 && b.err == nil {
		// A mark of the whole request is one of its last block.
		b.blocks[n-1].Keep, b.err = r.Mark.life()
	}
	return b.blocks, b.err
}

// OpenAIBlocks reads the body of a request to OpenAI's Responses API. The tools
// stand before all else, as they do for the model.
func OpenAIBlocks(body []byte, count func(string) int) ([]Block, error) {
	var r struct {
		Tools []json.RawMessage `json:"tools"`
		Input []json.RawMessage `json:"input"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("openai request: %w", err)
	}
	b := reader{count: count}
	b.all("tools", r.Tools)
	for _, raw := range r.Input {
		var item struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		}
		if err := json.Unmarshal(raw, &item); err != nil {
			return nil, fmt.Errorf("openai request: input: %w", err)
		}
		if item.Role == "" { // a call, or its result
			b.all("item", []json.RawMessage{raw})
			continue
		}
		b.list(item.Role, item.Content)
	}
	return b.blocks, b.err
}

// mark is a cache_control.
type mark struct {
	TTL string `json:"ttl"`
}

// life is how long the mark asks to keep a prefix.
func (m *mark) life() (time.Duration, error) {
	d, err := time.ParseDuration(cmp.Or(m.TTL, defaultLife.String()))
	if err == nil && d <= 0 {
		err = fmt.Errorf("lifetime %q is not above 0", m.TTL)
	}
	return d, err
}

// reader collects blocks; its first error ends the work.
type reader struct {
	count  func(string) int
	blocks []Block
	err    error
}

// list reads content: a text, or a list of blocks.
func (r *reader) list(place string, content json.RawMessage) {
	if len(content) == 0 || r.err != nil {
		return
	}
	var text string
	var list []json.RawMessage
	switch {
	case json.Unmarshal(content, &list) == nil: // null is an empty list
		r.all(place, list)
	case json.Unmarshal(content, &text) == nil:
		r.blocks = append(r.blocks, Block{Text: place + "\n" + text, Tokens: r.count(text)})
	default:
		r.err = fmt.Errorf("content of %s: neither a text nor a list", place)
	}
}

func (r *reader) all(place string, list []json.RawMessage) {
	for i, raw := range list {
		b, err := r.block(place, raw)
		if err != nil {
			r.err = cmp.Or(r.err, fmt.Errorf("block %d of %s: %w", i, place, err))
			return
		}
		r.blocks = append(r.blocks, b)
	}
}

// block reads one block. Its mark is no part of what is compared.
func (r *reader) block(place string, raw json.RawMessage) (Block, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return Block{}, err
	}
	var b Block
	if given, ok := members["cache_control"]; ok {
		var m *mark
		err := json.Unmarshal(given, &m)
		if err == nil && m != nil {
			b.Keep, err = m.life()
		}
		if err != nil {
			return Block{}, fmt.Errorf("cache_control: %w", err)
		}
		delete(members, "cache_control")
	}
	var text string
	if given, ok := members["text"]; !ok || json.Unmarshal(given, &text) != nil {
		encoded, err := json.Marshal(members) // sorted: the order of members is not the model's business
		if err != nil {
			return Block{}, err
		}
		text = string(encoded)
	}
	b.Text, b.Tokens = place+"\n"+text, r.count(text)
	return b, nil
}

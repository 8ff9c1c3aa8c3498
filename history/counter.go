package history

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/tiktoken-go/tokenizer/codec"
)

// Encoding names a vocabulary.
type Encoding string

// The vocabularies.
const (
	// Cl100kBase is the estimate for all providers.
	Cl100kBase Encoding = "cl100k_base"
	// O200kBase is that of newer models of OpenAI's.
	O200kBase Encoding = "o200k_base"
)

// EncodingFor returns the vocabulary that fits a model best: O200kBase for the
// models that use it, else Cl100kBase. A path before the name ("openai/") and
// the mark of a tuned model ("ft:") do not matter.
func EncodingFor(model string) Encoding {
	model = strings.TrimPrefix(model[strings.LastIndexByte(model, '/')+1:], "ft:")
	prefixes := []string{
		"gpt-4o", "gpt-4.1", "gpt-4.5", "gpt-5", "gpt-6", "gpt-oss", "chatgpt-4o", "o1", "o3", "o4",
	}
	if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(model, p) }) {
		return O200kBase
	}
	return Cl100kBase
}

// CounterOptions configure a Counter. The zero value is the usual one.
type CounterOptions struct {
	// Encoding is the vocabulary; empty means Cl100kBase.
	Encoding Encoding
	// Remember (8,192) is how many counts are kept, at least; at most twice as
	// many are. One takes about 50 bytes, whatever the length of its text.
	Remember int
}

// Counter counts tokens and remembers what it counted, by a hash of the text.
// NewCounter makes it. It is safe for concurrent use, and keeps no text.
type Counter struct {
	encoding Encoding
	// load unpacks the vocabulary, once.
	load func() *codec.Codec
	// hash finds the key of a text; a seed of its own for each Counter.
	hash func(string) textKey

	mu sync.Mutex
	// recent takes what is counted and what is asked for again. When it is full
	// it becomes older, and what was older is forgotten.
	recent, older map[textKey]int
	remember      int
}

// textKey stands for a text. Two texts of one length share a key once in 2^64
// pairs, and nobody can aim at it, because the hash is seeded at random; the
// harm would be one wrong estimate.
type textKey struct {
	sum    uint64
	length int
}

// NewCounter makes a Counter. The vocabulary is unpacked when it first counts.
// An unknown encoding or a negative number is an error.
func NewCounter(o CounterOptions) (*Counter, error) {
	o.Encoding = cmp.Or(o.Encoding, Cl100kBase)
	o.Remember = cmp.Or(o.Remember, 8192)
	if o.Remember < 0 {
		return nil, fmt.Errorf("counter: want to remember 1 count or more, got %d", o.Remember)
	}
	var open func() *codec.Codec
	switch o.Encoding {
	case Cl100kBase:
		open = codec.NewCl100kBase
	case O200kBase:
		open = codec.NewO200kBase
	default:
		return nil, fmt.Errorf("counter: unknown encoding %q", o.Encoding)
	}
	seed := maphash.MakeSeed()
	return &Counter{
		encoding: o.Encoding,
		load: sync.OnceValue(func() *codec.Codec {
			c := open()
			c.SetErrorMode(codec.ErrorModeReplace)
			return c
		}),
		hash:     func(s string) textKey { return textKey{maphash.String(seed, s), len(s)} },
		recent:   map[textKey]int{},
		remember: o.Remember,
	}, nil
}

// Encoding returns the name of the vocabulary, for manifests.
func (c *Counter) Encoding() Encoding { return c.encoding }

// Count returns the number of tokens in text. Bytes that are not UTF-8 count as
// the replacement character does. Special tokens written in a text count as the
// text that they are.
//
// The number is exact for its vocabulary unless the text has more than 256
// bytes of blanks in a row; then it may be too high by one for each 256.
func (c *Counter) Count(text string) int {
	if text == "" {
		return 0
	}
	key := c.hash(text)
	if n, ok := c.recall(key); ok {
		return n
	}
	n := c.tokenize(text)
	c.keep(key, n)
	return n
}

func (c *Counter) recall(key textKey) (int, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n, ok := c.recent[key]; ok {
		return n, true
	}
	n, ok := c.older[key]
	if ok {
		c.store(key, n)
	}
	return n, ok
}

func (c *Counter) keep(key textKey, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store(key, n)
}

// store wants the lock.
func (c *Counter) store(key textKey, n int) {
	if _, there := c.recent[key]; !there && len(c.recent) >= c.remember {
		c.recent, c.older = make(map[textKey]int, c.remember), c.recent
	}
	c.recent[key] = n
}

// tokenize counts a text piece by piece.
func (c *Counter) tokenize(text string) int {
	tokens := c.load()
	// The codec passes over DEL (U+007F), as if it were not there. Another
	// control character stands in for it: both are one token.
	text = strings.ReplaceAll(text, "\x7f", "\x01")
	n := 0
	for text != "" {
		end := pieceEnd(text)
		count, err := tokens.Count(text[:end])
		if err != nil {
			// The codec only fails on a time limit, which it does not have. No text
			// has more tokens than bytes.
			count = end
		}
		n += count
		text = text[end:]
	}
	return n
}

// maxBlanks is the longest run of blanks that is handed to the tokenizer. Its
// splitting takes time with the square of a run of blanks and newlines: 400 KiB
// of them, which a tool may well print, take over a minute, and in pieces of
// this size a fraction of a second.
const maxBlanks = 256

// pieceEnd returns where to cut a text so that its first piece has no run of
// blanks over maxBlanks bytes: inside the first such run, or at the end.
func pieceEnd(text string) int {
	run := 0
	for i := 0; i < len(text); {
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(text[i:])
		}
		switch {
		case !unicode.IsSpace(r):
			run = 0
		case run+size > maxBlanks:
			return i
		default:
			run += size
		}
		i += size
	}
	return len(text)
}

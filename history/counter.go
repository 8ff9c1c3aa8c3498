package history

import (
	"cmp"
	"fmt"
	"hash/maphash"
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
	Cl100kBase Encoding = "cl100k_base" // the tokenizer of OpenAI's older models
	O200kBase  Encoding = "o200k_base"  // that of its newer ones, and the estimate for all other models
)

// EncodingFor returns the vocabulary that fits a model best; see [TokensFor]. For no model it is Cl100kBase.
func EncodingFor(model string) Encoding {
	if model == "" {
		return Cl100kBase
	}
	return TokensFor(model).Encoding
}

// CounterOptions configure a Counter.
type CounterOptions struct {
	Encoding Encoding // the vocabulary; empty means Cl100kBase
	// Remember (8,192) is how many counts are kept at least, of about 50 bytes each; at most twice as many are.
	Remember int
}

// Counter counts tokens and remembers what it counted, by a hash of the text. NewCounter
// makes it. It is safe for concurrent use, and keeps no text.
type Counter struct {
	encoding Encoding
	load     func() *codec.Codec  // unpacks the vocabulary, once
	hash     func(string) textKey // seeded at random

	mu sync.Mutex
	// When recent is full it becomes older, and older is forgotten.
	recent, older map[textKey]int
	remember      int
}

// textKey identifies a text. Two texts of one length share a key once in 2^64 pairs, which costs one wrong estimate.
type textKey struct {
	sum    uint64
	length int
}

// NewCounter makes a Counter. The vocabulary is unpacked when it first counts. An unknown
// encoding or a negative number is an error.
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

// Count returns the number of tokens in text. Invalid UTF-8 counts as the replacement character does, special
// tokens as plain text.
//
// The number is exact for its vocabulary, but may be too high by one for each 256 bytes of blanks in a row.
func (c *Counter) Count(text string) int {
	if text == "" {
		return 0
	}
	key := c.hash(text)
	c.mu.Lock()
	n, ok := c.recent[key]
	if !ok {
		n, ok = c.older[key]
	}
	c.mu.Unlock()
	if !ok {
		n = c.tokenize(text)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, there := c.recent[key]; !there && len(c.recent) >= c.remember {
		c.recent, c.older = make(map[textKey]int, c.remember), c.recent
	}
	c.recent[key] = n
	return n
}

func (c *Counter) tokenize(text string) int {
	tokens := c.load()
	// The codec ignores DEL (U+007F); another control character, also one token, replaces it.
	text = strings.ReplaceAll(text, "\x7f", "\x01")
	n := 0
	for text != "" {
		end := pieceEnd(text)
		count, err := tokens.Count(text[:end])
		if err != nil {
			count = end // the codec fails only on a time limit, which it does not have
		}
		n += count
		text = text[end:]
	}
	return n
}

// maxBlanks is the longest run of blanks, in bytes, that the tokenizer gets: its splitting
// takes quadratic time for blanks and newlines, over a minute for 400 KiB.
const maxBlanks = 256

// pieceEnd returns the end of the first piece of a text without a run of blanks over maxBlanks bytes.
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

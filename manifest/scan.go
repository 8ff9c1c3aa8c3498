package manifest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"hash"
	"strconv"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/digest"
)

// link is what a chain needs to know of a record, read off its bytes without
// decoding it.
type link struct {
	Index
	prev string
	// sum is what the hash should be; it equals Hash unless the record was
	// altered. It is empty for a keyed record without the key.
	sum string
}

// scanLink reads a record's index and prev, and computes its hash: with the key
// if the record says that it was made with one. It is false
// for bytes that are not an object with ascending keys and those fields.
//
// The hash covers the bytes with the value of "hash" emptied and that of
// "actual" in "cache" null, so nothing has to be encoded anew: a record stays
// verifiable when a later version knows more fields.
func scanLink(data, key []byte) (link, bool) {
	var l link
	var apart [2]unhashed // in the order of the keys
	found := 0
	ok := scanObject(data, func(name, value []byte, at int) bool {
		to := l.place(name)
		switch {
		case to != nil:
			found++
			return readText(value, to)
		case string(name) == "cache":
			apart[0] = findActual(value, at)
		case string(name) == "hash":
			found++
			apart[1] = unhashed{at, at + len(value), `""`}
			return readText(value, &l.Hash)
		case string(name) == "seq":
			found++
			var err error
			l.Seq, err = strconv.ParseUint(string(value), 10, 64)
			return err == nil
		case string(name) == "created_at":
			found++
			var text string
			if !readText(value, &text) {
				return false
			}
			var err error
			l.CreatedAt, err = time.Parse(time.RFC3339Nano, text)
			return err == nil
		case string(name) == "profile":
			found++
			return readText(value, (*string)(&l.Profile))
		}
		return true
	})
	if !ok || found != linkFields {
		return link{}, false
	}
	if l.keyed() {
		if len(key) > 0 {
			l.sum = sumParts(hmac.New(sha256.New, key), digest.PrefixHMACSHA256, data, apart[:])
		}
		return l, true
	}
	l.sum = sumParts(sha256.New(), digest.PrefixSHA256, data, apart[:])
	return l, true
}

// linkFields is how many members scanLink reads: those of Index, and prev.
const linkFields = 10

// place returns where the plain texts among the members go.
func (l *link) place(name []byte) *string {
	switch string(name) {
	case "manifest_id":
		return &l.ManifestID
	case "workspace_id":
		return &l.WorkspaceID
	case "thread_id":
		return &l.ThreadID
	case "turn_id":
		return &l.TurnID
	case "fingerprint_full":
		return &l.FingerprintFull
	case "prev":
		return &l.prev
	}
	return nil
}

func readText(value []byte, to *string) bool {
	if len(value) < 2 || value[0] != '"' {
		return false
	}
	if bytes.IndexByte(value, '\\') < 0 {
		*to = string(value[1 : len(value)-1])
		return true
	}
	return json.Unmarshal(value, to) == nil
}

// keyed reports whether the record says that its hash was made with a key.
func (l *link) keyed() bool { return strings.HasPrefix(l.Hash, digest.PrefixHMACSHA256) }

// unhashed is a value that the hash does not cover, and what counts in its place.
type unhashed struct {
	from, to int
	as       string
}

// findActual finds the value of "actual" in the group cache, which begins at the
// given place.
func findActual(cache []byte, at int) unhashed {
	var u unhashed
	scanObject(cache, func(name, value []byte, start int) bool {
		if string(name) == "actual" {
			u = unhashed{at + start, at + start + len(value), "null"}
		}
		return string(name) < "actual"
	})
	return u
}

// sumParts is the hash of a record without some of its values, which stand in
// ascending order; the zero one is none.
func sumParts(h hash.Hash, prefix string, data []byte, apart []unhashed) string {
	done := 0
	for _, u := range apart {
		if u.to == 0 {
			continue
		}
		h.Write(data[done:u.from]) // a hash never returns an error
		h.Write([]byte(u.as))
		done = u.to
	}
	h.Write(data[done:])
	return prefix + hex.EncodeToString(h.Sum(nil))
}

// scanObject visits the members of an object in compact JSON whose keys ascend:
// at is where the value begins. It stops with false where that is not so and
// when visit is false. Nested values are skipped, not checked.
func scanObject(data []byte, visit func(name, value []byte, at int) bool) bool {
	if len(data) < 2 || data[0] != '{' || data[len(data)-1] != '}' {
		return false
	}
	var last []byte
	for i := 1; ; {
		end := skipValue(data, i)
		if data[i] != '"' || end >= len(data) || data[end] != ':' {
			return false
		}
		name := data[i+1 : end-1]
		if last != nil && bytes.Compare(last, name) >= 0 {
			return false
		}
		last = name
		start := end + 1
		end = skipValue(data, start)
		if end == start || end >= len(data) || !visit(name, data[start:end], start) {
			return false
		}
		if data[end] == '}' {
			return end == len(data)-1
		}
		if data[end] != ',' || end+1 >= len(data) {
			return false
		}
		i = end + 1
	}
}

// skipValue returns the index behind the value that begins at i, len(data) if it
// has no end.
func skipValue(data []byte, i int) int {
	for depth := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			if i = skipString(data, i+1); i >= len(data) {
				return len(data)
			}
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth == 0 {
				return i // the value is a scalar, and its container ends
			}
			depth--
		case ',', ':':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return i + 1
		}
	}
	return len(data)
}

// skipString returns the index of the quote that closes the string whose
// contents begin at i, or len(data).
func skipString(data []byte, i int) int {
	for {
		n := bytes.IndexByte(data[i:], '"')
		if n < 0 {
			return len(data)
		}
		i += n
		slashes := 0
		for data[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i
		}
		i++
	}
}

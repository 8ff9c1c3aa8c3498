package manifest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash"
	"strconv"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/internal/jsonscan"
)

type link struct {
	Index
	prev string
	sum  string // what the hash should be; empty for a keyed record without the key
}

// scanLink reads a record's index and prev off its bytes, and computes its hash: with the key if the record says that
// it was made with one. It is false for bytes that are not an object with ascending keys and those fields.
//
// Nothing is encoded again, so a record stays verifiable when a later version knows more fields.
func scanLink(data, key []byte) (link, bool) {
	var l link
	var created, seq string
	texts := map[string]*string{
		"manifest_id": &l.ManifestID, "workspace_id": &l.WorkspaceID, "thread_id": &l.ThreadID, "turn_id": &l.TurnID,
		"fingerprint_full": &l.FingerprintFull, "profile": (*string)(&l.Profile), "prev": &l.prev, "hash": &l.Hash, "created_at": &created,
	}
	missing := len(texts) + 1
	var replaced [2]replacement // in the order of the keys
	ok := scanObject(data, func(name, value []byte, at int) bool {
		switch string(name) {
		case "cache":
			replaced[0] = findActual(value, at)
		case "hash":
			replaced[1] = replacement{at, at + len(value), `""`}
		case "seq":
			seq = string(value)
			missing--
		}
		switch string(name) {
		case "actor":
			return readText(value, &l.Actor)
		case "kind":
			return readText(value, (*string)(&l.Kind))
		}
		to := texts[string(name)]
		if to == nil {
			return true
		}
		missing--
		return readText(value, to)
	})
	var errSeq, errTime error
	l.Seq, errSeq = strconv.ParseUint(seq, 10, 64)
	l.CreatedAt, errTime = time.Parse(time.RFC3339Nano, created)
	switch {
	case !ok || missing > 0 || errSeq != nil || errTime != nil:
		return link{}, false
	case !isKeyed(l.Hash):
		l.sum = sumReplaced(sha256.New(), digest.PrefixSHA256, data, replaced[:])
	case len(key) > 0:
		l.sum = sumReplaced(hmac.New(sha256.New, key), digest.PrefixHMACSHA256, data, replaced[:])
	}
	return l, true
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

func isKeyed(hash string) bool { return strings.HasPrefix(hash, digest.PrefixHMACSHA256) }

// replacement is a value that the hash does not cover, and what it covers instead.
type replacement struct {
	from, to int
	by       string
}

// findActual finds the value of "actual" in the group cache, which begins at at.
func findActual(cache []byte, at int) replacement {
	var r replacement
	scanObject(cache, func(name, value []byte, start int) bool {
		if string(name) == "actual" {
			r = replacement{at + start, at + start + len(value), "null"}
		}
		return string(name) < "actual"
	})
	return r
}

// sumReplaced hashes data with replacements in ascending order; zero ones are skipped.
func sumReplaced(h hash.Hash, prefix string, data []byte, replaced []replacement) string {
	done := 0
	for _, r := range replaced {
		if r.to == 0 {
			continue
		}
		h.Write(data[done:r.from]) // a hash never returns an error
		h.Write([]byte(r.by))
		done = r.to
	}
	h.Write(data[done:])
	return prefix + hex.EncodeToString(h.Sum(nil))
}

// scanObject visits the members of an object with ascending keys; at is where the
// value begins. It is false for anything else, or if visit is.
func scanObject(data []byte, visit func(name, value []byte, at int) bool) bool {
	var last []byte
	d := jsonscan.Reader(data)
	err := jsonscan.Members(d, func(name, value []byte) error {
		name = name[1 : len(name)-1]
		if last != nil && bytes.Compare(last, name) >= 0 || !visit(name, value, int(d.InputOffset())-len(value)) {
			return errors.New("stop")
		}
		last = name
		return nil
	})
	return err == nil && int(d.InputOffset()) == len(data) && data[0] == '{'
}

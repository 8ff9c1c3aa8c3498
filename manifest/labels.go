package manifest

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
)

// HashLabels returns a copy of the record in which text that somebody wrote is
// replaced by its [Fingerprint] under the key: titles of sections, labels of
// sources, ids of sources that are files or addresses, paths of files and of absent grants, messages
// of diagnostics, details of plugins, policy values other than numbers,
// booleans and null, details of audits, and reasons of left_out that are not plain words.
//
// Ids, names, codes and counts stay, and so do empty texts. Text that is a
// fingerprint already stays too, so that hashing twice is hashing once. Without
// a key short texts can be guessed from their fingerprints.
//
// A sealed record has to be sealed again.
func HashLabels(m Manifest, key []byte) Manifest {
	h := labelHasher{key}
	m.Sections = mapped(m.Sections, func(s *Section) {
		h.replace(&s.Title)
		s.SourceRefs = mapped(s.SourceRefs, h.source)
	})
	m.LeftOut = mapped(m.LeftOut, func(l *phases.LeftOut) {
		if !isWord(l.Reason) {
			h.replace(&l.Reason)
		}
	})
	m.Plugins = mapped(m.Plugins, func(p *phases.PluginRow) {
		h.replace(&p.Message)
		p.AbsentPaths = mapped(p.AbsentPaths, h.replace)
	})
	m.Audits = mapped(m.Audits, func(a *Audit) { a.HashDetails(key) })
	m.Policies = mapped(m.Policies, func(p *phases.PolicyEntry) { h.value(&p.Value) })
	m.Files = mapped(m.Files, func(f *File) { h.replace(&f.Path) })
	m.Diagnostics = mapped(m.Diagnostics, func(d *Diagnostic) { h.replace(&d.Message) })
	return m
}

type labelHasher struct{ key []byte }

func (h labelHasher) replace(s *string) {
	if *s != "" && !isFingerprint(*s) {
		*s = Fingerprint(*s, h.key)
	}
}

func (h labelHasher) source(r *phases.SourceRef) {
	h.replace(&r.Label)
	if slices.Contains([]string{"file", "url"}, r.Kind) {
		h.replace(&r.ID)
	}
}

// value replaces JSON that can hold text by a JSON string. What a plugin wrote
// as a string that is a fingerprint stays.
func (h labelHasher) value(raw *json.RawMessage) {
	v := strings.TrimSpace(string(*raw))
	switch {
	case v == "" || !strings.ContainsRune(`"[{`, rune(v[0])):
		return
	case v[0] == '"' && isFingerprint(strings.Trim(v, `"`)):
		return
	}
	*raw = json.RawMessage(strconv.Quote(Fingerprint(v, h.key))) // plain ASCII: Go's quotes are JSON's
}

// isWord reports whether s is a word as the vocabularies have them: lower case
// ASCII letters and underscores.
func isWord(s string) bool {
	return len(s) <= 40 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz_") == ""
}

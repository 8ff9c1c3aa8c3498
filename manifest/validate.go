package manifest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/grapnelhq/grapnel/internal/digest"
	"github.com/grapnelhq/grapnel/internal/jsonscan"
	"github.com/grapnelhq/grapnel/phases"
)

// maxDepth leaves enough levels for policy values.
const maxDepth = 64

// Parse reads one record and validates it. Unknown fields and anything behind
// the record are errors. The JSON need not be canonical.
func Parse(data []byte) (Manifest, error) {
	if jsonscan.Depth(data) > maxDepth {
		return Manifest{}, fmt.Errorf("manifest: nested deeper than %d", maxDepth)
	}
	var m Manifest
	if err := json.Unmarshal(data, &m, json.RejectUnknownMembers(true)); err != nil { // jsonscan has better errors
		return Manifest{}, fmt.Errorf("manifest: %w", cmp.Or(jsonscan.Decode(data, &Manifest{}), jsonscan.Exact(data, &m), err))
	}
	if err := Validate(&m); err != nil {
		return Manifest{}, fmt.Errorf("manifest %.40s: %w", m.ManifestID, err)
	}
	return m, nil
}

// parseCanonical is [Parse] for bytes that must be canonical. It uses buf, if that is large enough.
func parseCanonical(data, buf []byte) (*Manifest, error) {
	m := &Manifest{}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, err
	}
	if again, err := appendCanonical(buf[:0], m); err != nil || !bytes.Equal(again, data) {
		return nil, errors.Join(errors.New("it is not in canonical form"), Validate(m))
	}
	return m, Validate(m)
}

// Validate says whether the record makes sense by itself. It checks that
//
//   - the schema version is the current one, the id is a ULID, the profile is
//     known, the time is set, and only the first record has no prev;
//   - fingerprints and hashes have the form of one
//     where they are set (a record that is not sealed yet is fine);
//   - sections have valid ids without repetition, positions that count from 0,
//     known stability and placement, lengths that fit together, content maps
//     without a gap, and are the ones that section_ids names;
//   - numbers of the cache are not below 0, its words are known, and a miss goes
//     with a prediction of 0;
//   - requests name a record, and what differed in them is of a known kind;
//   - no list is nil.
//
// It computes no hashes. The error joins all mistakes, each naming its field.
func Validate(m *Manifest) error {
	v := &validator{}
	v.head(m)
	v.hashes(m)
	for i := range m.Sections {
		v.section(&m.Sections[i], i)
	}
	v.sectionIDs(m)
	v.cache(&m.Cache)
	for i := range m.Requests {
		err := m.Requests[i].Check()
		v.needf(err == nil, "requests[%d]: %w", i, err)
	}
	v.lists(m)
	return errors.Join(v.errs...)
}

type validator struct{ errs []error }

func (v *validator) needf(ok bool, format string, args ...any) {
	if !ok {
		v.errs = append(v.errs, fmt.Errorf(format, args...))
	}
}

func (v *validator) head(m *Manifest) {
	v.needf(m.SchemaVersion == SchemaVersion, "schema_version: %d is not %d", m.SchemaVersion, SchemaVersion)
	v.needf(slices.Contains([]RecordKind{KindPrompt, KindEvents, KindErasure}, m.Kind), "kind: %.80q is not prompt, events or erasure", m.Kind)
	v.needf(isULID(m.ManifestID), "manifest_id: %q is not a ULID", m.ManifestID)
	v.needf(m.Round >= 0, "round: %d is below 0", m.Round)
	v.needf(0 <= m.RunsBefore && m.RunsBefore <= len(m.Runs), "runs_before: %d of %d runs", m.RunsBefore, len(m.Runs))
	v.needf(m.CompilerVersion != "" || m.Kind == KindErasure, "compiler_version: is empty")
	v.needf(slices.Contains([]phases.Profile{phases.ProfileFull, phases.ProfileMinimal, phases.ProfileNone}, m.Profile),
		"profile: %q is not full, minimal or none", m.Profile)
	v.needf(!m.CreatedAt.IsZero(), "created_at: is not set")
	v.needf((m.Seq == 0) == (m.Prev == "") || m.Hash == "", "prev: %q does not go with seq %d", m.Prev, m.Seq)
}

func (v *validator) hashes(m *Manifest) {
	for _, f := range []struct{ name, value string }{
		{"fingerprint_stable", m.FingerprintStable},
		{"fingerprint_dynamic", m.FingerprintDynamic},
		{"fingerprint_dynamic_without_extra_system", m.FingerprintDynamicWithoutExtraSystem},
		{"fingerprint_full", m.FingerprintFull},
		{"fingerprint_tools", m.FingerprintTools},
	} {
		v.needf(isFingerprint(f.value), "%s: %q is not a fingerprint", f.name, f.value)
	}
	for _, f := range []struct{ name, value string }{
		{"hash_stable", m.HashStable},
		{"hash_dynamic", m.HashDynamic},
		{"hash_dynamic_without_extra_system", m.HashDynamicWithoutExtraSystem},
		{"hash_full", m.HashFull},
		{"hash_tools", m.HashTools},
	} {
		v.needf(isHash(f.value), "%s: %q is not a hash", f.name, f.value)
	}
	for _, f := range []struct{ name, value string }{{"content_hash", m.ContentHash}, {"prev", m.Prev}, {"hash", m.Hash}} {
		v.needf(f.value == "" || isHash(f.value), "%s: %q is not a hash", f.name, f.value)
	}
}

func (v *validator) section(s *Section, i int) {
	where := fmt.Sprintf("sections[%d] (%.80s)", i, s.SectionID)
	v.needf(phases.ValidName(s.SectionID), "%s: section_id is not a name", where)
	v.needf(s.Owner != "", "%s: owner is empty", where)
	v.needf(s.Position == i, "%s: position is %d", where, s.Position)
	v.needf(s.Stability == phases.StabilityStable || s.Stability == phases.StabilityDynamic, "%s: stability %q is unknown", where, s.Stability)
	v.needf(slices.Contains([]phases.Placement{phases.PlacementSystem, phases.PlacementSystemMessage, phases.PlacementUserMessage}, s.Placement),
		"%s: placement %q is unknown", where, s.Placement)
	v.needf(isFingerprint(s.Fingerprint), "%s: fingerprint %q is not one", where, s.Fingerprint)
	v.needf(isHash(s.Hash), "%s: hash %q is not one", where, s.Hash)
	v.needf(s.Chars > 0 && s.OriginalChars > 0, "%s: has no text", where)
	v.needf((s.Tokens == nil) == (s.Tokenizer == ""), "%s: tokens and tokenizer go together", where)
	v.needf(s.Tokens == nil || *s.Tokens >= 0, "%s: tokens are below 0", where)
	if t := s.Truncation; t != nil {
		v.needf(t.Limit != "" && 0 <= t.Kept && t.Kept <= t.Original, "%s: truncation from %d to %d by %q", where, t.Original, t.Kept, t.Limit)
	}
	v.needf(s.SourceRefs != nil, "%s: source_refs is null", where)
	v.needf(s.ContentMap != nil, "%s: content_map is null", where)
	at := 0
	for _, span := range s.ContentMap {
		v.needf(span.Offset == at && span.Length > 0 && span.Owner != "", "%s: content_map has a gap or an empty span at %d", where, at)
		at += span.Length
	}
	v.needf(at == s.Chars || len(s.ContentMap) == 0, "%s: content_map covers %d of %d characters", where, at, s.Chars)
}

func (v *validator) sectionIDs(m *Manifest) {
	ids := make([]string, len(m.Sections))
	seen := make(map[string]int, len(m.Sections))
	for i := range m.Sections {
		ids[i] = m.Sections[i].SectionID
		first, dup := seen[ids[i]]
		v.needf(!dup, "sections[%d]: %.80q is there twice, first as sections[%d]", i, ids[i], first)
		seen[ids[i]] = i
	}
	v.needf(slices.Equal(ids, m.SectionIDs), "section_ids: are not those of the sections, in order")
}

func (v *validator) cache(c *Cache) {
	for _, n := range []struct {
		name  string
		value *int
	}{{"predicted", c.Predicted}, {"actual", c.Actual}, {"tokens_lost", &c.TokensLost}} {
		v.needf(n.value == nil || *n.value >= 0, "cache.%s: is below 0", n.name)
	}
	for _, cause := range []Cause{c.Cause, c.Because} {
		v.needf(cause == "" || slices.Contains(causes(), cause), "cache: the cause %.80q is unknown", cause)
	}
	for i, b := range c.Plan.Breakpoints {
		v.needf(slices.Contains([]BreakAfter{AfterTools, AfterStable, AfterDynamic}, b.After), "cache.plan.breakpoints[%d]: after %.80q is unknown", i, b.After)
	}
}

func (v *validator) lists(m *Manifest) {
	for _, l := range []struct {
		name  string
		isNil bool
	}{
		{"sections", m.Sections == nil},
		{"section_ids", m.SectionIDs == nil},
		{"omitted", m.Omitted == nil},
		{"hook_sources", m.HookSources == nil},
		{"runs", m.Runs == nil},
		{"plugins", m.Plugins == nil},
		{"policies", m.Policies == nil},
		{"tools", m.Tools == nil},
		{"budgets.phases", m.Budgets.Phases == nil},
		{"files", m.Files == nil},
		{"diagnostics", m.Diagnostics == nil},
	} {
		v.needf(!l.isNil, "%s: is null", l.name)
	}
	for i := range m.Runs {
		v.needf(m.Runs[i].Contributions != nil && m.Runs[i].Cut != nil, "runs[%d] (%.80s): has a list that is null", i, m.Runs[i].Subscription)
	}
}

func isULID(s string) bool {
	return len(s) == 26 && s[0] <= '7' && strings.Trim(s, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") == ""
}

func isFingerprint(s string) bool {
	return isHex(s, digest.PrefixXXH64, 16) || isHex(s, digest.PrefixHMACSHA256, 64)
}

func isHash(s string) bool {
	return isHex(s, digest.PrefixSHA256, 64) || isHex(s, digest.PrefixHMACSHA256, 64)
}

func isHex(s, prefix string, digits int) bool {
	rest, ok := strings.CutPrefix(s, prefix)
	return ok && len(rest) == digits && strings.Trim(rest, "0123456789abcdef") == ""
}

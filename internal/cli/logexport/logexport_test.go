package logexport_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/cli/logexport"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// sealed is a record with a section for each title.
func sealed(t *testing.T, titles ...string) manifest.Record {
	t.Helper()
	m := manifest.New()
	m.ManifestID, m.CompilerVersion, m.WorkspaceID, m.ThreadID, m.TurnID = "01JZ"+strings.Repeat("0", 22), "1", "w", "t<1>", "u"
	m.CreatedAt, m.AgentID, m.Build, m.Actor = time.Date(2026, 2, 3, 4, 5, 6, 7, time.UTC), "scout", "v1", "user:ana"
	m.Cache.Provider, m.Cache.Model = "gemini", "gemini-3-pro"
	m.Fingerprints = manifest.EmptyFingerprints(nil)
	tokens := 3
	for i, title := range titles {
		m.Sections = append(m.Sections, manifest.Section{
			SectionID: "s" + string(rune('0'+i)), Title: title, Stability: phases.StabilityStable, Placement: phases.PlacementSystem, Owner: "house",
			Position: i, Chars: 5, OriginalChars: 9, Tokens: &tokens, Tokenizer: "cl100k_base", Fingerprint: m.FingerprintFull, Hash: m.HashFull,
			Truncation: &phases.Truncation{Limit: phases.LimitSection},
		})
	}
	r, err := manifest.SealRecord(nil, &m, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func options() logexport.Options {
	return logexport.Options{
		Usage: func(string) ([]manifest.Usage, error) {
			return []manifest.Usage{{Rounds: 1}, {Rounds: 2, Usage: phases.Usage{InputTokens: 100, OutputTokens: 20, CacheReadTokens: 60, CacheWriteTokens: 5}}}, nil
		},
		Envelope: func(payloadType string, payload []byte) ([]byte, error) {
			return json.Marshal(map[string]string{"type": payloadType, "payload": string(payload)})
		},
	}
}

func export(t *testing.T, f logexport.Format, o logexport.Options, records ...manifest.Record) string {
	t.Helper()
	var out bytes.Buffer
	w, err := logexport.New(f, &out, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestCSV(t *testing.T) {
	t.Parallel()
	a := sealed(t, "=1+1", "a, \"b\"\nc")
	rows, err := csv.NewReader(strings.NewReader(export(t, logexport.CSV, options(), a, sealed(t)))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	none, hash := manifest.Fingerprint("", nil), manifest.Hash("", nil)
	head := func(r manifest.Record) []string {
		return []string{
			"01JZ" + strings.Repeat("0", 22), "prompt", "2026-02-03T04:05:06.000000007Z", "w", "t<1>", "0", "u", "0", "", "user:ana", "scout", "", "",
			"gemini", "gemini-3-pro", none, hash, r.Index.Hash,
		}
	}
	want := [][]string{
		logexport.Columns(),
		append(head(a), "0", "s0", "'=1+1", "house", "stable", "system", "5", "9", "3", "section", hash, none),
		append(head(a), "1", "s1", "a, \"b\"\nc", "house", "stable", "system", "5", "9", "3", "section", hash, none),
		append(head(sealed(t)), make([]string, 12)...),
	}
	if diff := cmp.Diff(rows, want); diff != "" {
		t.Errorf("rows (-got +want):\n%s", diff)
	}
	if got := export(t, logexport.CSV, options()); got != strings.Join(logexport.Columns(), ",")+"\n" {
		t.Errorf("an empty log is %q", got)
	}
}

func TestInToto(t *testing.T) {
	t.Parallel()
	r := sealed(t, "A <b> & \u2028")
	var envelope struct {
		Type    string `json:"type"`
		Payload string `json:"payload"`
	}
	if err := json.Unmarshal([]byte(export(t, logexport.InToto, options(), r)), &envelope); err != nil || envelope.Type != "application/vnd.in-toto+json" {
		t.Fatalf("%v, %+v", err, envelope)
	}
	var s struct {
		Type          string `json:"_type"`
		PredicateType string `json:"predicateType"`
		Subject       []struct {
			Name   string            `json:"name"`
			Digest map[string]string `json:"digest"`
		} `json:"subject"`
		Predicate struct {
			Record json.RawMessage  `json:"record"`
			Usage  []manifest.Usage `json:"usage"`
		} `json:"predicate"`
	}
	if err := json.Unmarshal([]byte(envelope.Payload), &s); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(s.Predicate.Record)
	if s.Type != "https://in-toto.io/Statement/v1" || s.PredicateType != "https://github.com/grapnelhq/grapnel/attestation/manifest/v1" || len(s.Subject) != 1 ||
		s.Subject[0].Name != r.Index.ManifestID || s.Subject[0].Digest["sha256"] != hex.EncodeToString(sum[:]) ||
		!bytes.Equal(s.Predicate.Record, r.Data) || len(s.Predicate.Usage) != 2 {
		t.Errorf("the statement is %+v", s)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	if _, err := logexport.New("xml", nil, logexport.Options{}); err == nil {
		t.Error("there is a format xml")
	}
	full := errors.New("full")
	for _, f := range logexport.Formats() {
		w, err := logexport.New(f, failing{full}, options())
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(sealed(t, "A")); !errors.Is(err, full) {
			t.Errorf("%s: %v", f, err)
		}
		if f == logexport.JSONL {
			continue
		}
		o := options()
		o.Usage = func(string) ([]manifest.Usage, error) { return nil, full }
		if w, err = logexport.New(f, &bytes.Buffer{}, o); err != nil {
			t.Fatal(err)
		}
		bad := sealed(t, "A")
		if f == logexport.CSV || f == logexport.OTLP {
			bad.Data = []byte("{}")
		}
		if err := w.Write(bad); err == nil || !strings.Contains(err.Error(), bad.Index.ManifestID) {
			t.Errorf("%s: %v", f, err)
		}
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

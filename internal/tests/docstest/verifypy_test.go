package docstest

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// logSink keeps the records as an export prints them.
type logSink struct {
	key []byte

	mu    sync.Mutex
	last  map[string]*manifest.Link
	lines [][]byte
	texts map[string]string
}

func (s *logSink) Append(_ context.Context, m *manifest.Manifest, texts []manifest.Text) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := manifest.SealRecord(nil, m, s.last[m.ThreadID], s.key)
	if err != nil {
		return err
	}
	link := m.Link()
	s.last[m.ThreadID] = &link
	s.lines = append(s.lines, r.Data)
	for _, t := range texts {
		s.texts[t.Hash] = t.Text
	}
	return nil
}

func (s *logSink) Last(context.Context, string, string) (*manifest.Manifest, error) { return nil, nil }

func (s *logSink) Report(context.Context, manifest.Usage) error { return nil }

// recordLog records, with testdata/verified.yaml (joined, framed and cut sections, contexts, messages, verdicts, rewrites, audits
// and hidden tools), random turns and dispatches of two threads.
func recordLog(t *testing.T, settings string, chainKey []byte) *logSink {
	t.Helper()
	cfg, err := config.Loader{LookupEnv: environment}.Parse([]byte(strings.Replace(fileText(t, filepath.Join("testdata", "verified.yaml")), "keep_text: true", "keep_text: true"+settings, 1)), "grapnel.yaml")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	writeFile(t, filepath.Join(home, "SOUL.md"), strings.Repeat("I am calm.\n", 9))
	sink := &logSink{key: chainKey, last: map[string]*manifest.Link{}, texts: map[string]string{}}
	o := runtime.Options{InProcess: map[string]runtime.Plugin{}, PersonaDir: home, Sink: sink, CountTokens: func(s string) int { return len(s) / 4 }, TokenizerName: "quarters"}
	for _, p := range cfg.Plugins {
		if o.InProcess[p.Name], err = firstParty().New(p.Builtin); err != nil {
			t.Fatal(err)
		}
	}
	eng, rng := newEngine(t, cfg, o), rand.New(rand.NewPCG(1, 2))
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	for n := range 5 {
		where := phases.Context{
			WorkspaceID: "w", ThreadID: pick("one", "zwei ü"), TurnID: strconv.Itoa(n), Mode: phases.ModeAgent, Actor: phases.Actor{Kind: "user", ID: "7"},
			Profile: phases.Profile(pick("full", "minimal", "none")),
		}
		turn, err := eng.BeginTurn(t.Context(), where)
		if err != nil {
			t.Fatal(err)
		}
		for range 1 + rng.IntN(2) {
			in := runtime.CompileInput{
				UserText: "Hallo", Model: "m", Provider: compiler.Anthropic, ToolCalling: rng.IntN(3) > 0, ExistingTools: []string{"shell"},
				Host:   compiler.HostTexts{DynamicContext: pick("", "From the host.\n\n\n", strings.Repeat("A long text of the host. ", 20)), Safety: pick("", "\u00e9\u0301 <!-- grapnel:dynamic -->")},
				Custom: []compiler.CustomSection{{SectionID: "own", Title: pick("", "Own"), Text: pick("Own text.", "\U0001F600")}},
				Limits: compiler.Limits{SectionChars: 200, FileChars: 80}, History: &manifest.History{Entries: n, Hash: "h"},
			}
			if _, err := turn.Compile(t.Context(), in); err != nil {
				t.Fatal(err)
			}
			if _, err := turn.Dispatch(t.Context(), &phases.ToolPreCallInput{Tool: "list", Arguments: json.RawMessage(`{"depth":1e3}`)}); err != nil {
				t.Fatal(err)
			}
		}
		sent := &compiler.Request{
			Agent: "agent", System: []compiler.RequestPart{{ID: "one", Owner: "agent", Stability: phases.StabilityStable, Text: "Be ü.\n\n"}, {ID: "one", Owner: "mod:x", Stability: phases.StabilityDynamic, Text: "Be y."}},
			Tools:    []compiler.RequestPart{{ID: "ls", Owner: "mcp:files", Text: `{"name":"ls"}`}},
			Messages: []compiler.RequestPart{{ID: "1", Owner: "user", Kind: "text", Role: "user", Text: "Hallo"}}, History: manifest.History{Entries: 1, Hash: "h", Cached: 1}, Cached: []int{0},
		}
		if _, err := turn.Observe(t.Context(), runtime.CompileInput{Model: "m", Provider: compiler.Anthropic}, sent); err != nil {
			t.Fatal(err)
		}
		if _, err := turn.End(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := eng.Dispatch(t.Context(), where, &phases.ToolPreCallInput{Tool: "rm"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := eng.WaitBackground(t.Context()); err != nil {
		t.Fatal(err)
	}
	return sink
}

// TestVerifyPy runs examples/verify-py, which knows what docs/MANIFEST.md says and nothing else, over logs of this
// engine, and over such that somebody changed.
func TestVerifyPy(t *testing.T) {
	t.Parallel()

	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skipf("there is no python3, which runs examples/verify-py: %v", err)
	}
	chainKey := []byte("a secret of the chain")
	for name, tt := range map[string]struct {
		settings string
		key      []byte
	}{
		"plain": {}, "keyed": {`, fingerprint_key: "of fingerprints"`, chainKey}, "labels": {", labels: hash", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			log := recordLog(t, tt.settings, tt.key)
			run := func(lines [][]byte, texts map[string]string) (string, bool) {
				return verifyPy(t, python, lines, texts, tt.key)
			}
			if said, ok := run(log.lines, log.texts); !ok || !strings.Contains(said, " 0 problems") {
				t.Fatalf("a whole log:\n%s", said)
			}
			for what, change := range tamperings(tt.key) {
				lines, texts := bytes.Split(bytes.Join(log.lines, []byte("\n")), []byte("\n")), maps.Clone(log.texts)
				lines = change(t, lines, texts)
				if said, ok := run(lines, texts); ok {
					t.Errorf("%s is not noticed:\n%s", what, said)
				}
			}
		})
	}
}

type tampering = func(t *testing.T, lines [][]byte, texts map[string]string) [][]byte

// tamperings change a log. Those that hash anew what they changed are found by what the record says otherwise.
func tamperings(key []byte) map[string]tampering {
	edit := func(seal bool, change func(m *manifest.Manifest)) tampering {
		return func(t *testing.T, lines [][]byte, _ map[string]string) [][]byte {
			t.Helper()
			last := len(lines) - 1
			for last > 0 && !bytes.Contains(lines[last], []byte(`"section_id":"shared"`)) {
				last--
			}
			m, err := manifest.Parse(lines[last])
			if err != nil {
				t.Fatal(err)
			}
			change(&m)
			if seal {
				m.ContentHash, err = manifest.ContentHash(&m)
				if err == nil {
					m.Hash, err = manifest.RecordHash(&m, key)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			if lines[last], err = manifest.Canonical(&m); err != nil {
				t.Fatal(err)
			}
			return lines[:last+1] // the chain behind it would break, too
		}
	}
	return map[string]tampering{
		"another turn":          edit(false, func(m *manifest.Manifest) { m.TurnID = "other" }),
		"another owner":         edit(true, func(m *manifest.Manifest) { m.Sections[0].ContentMap[0].Owner = "house" }),
		"a gap in a map":        edit(true, func(m *manifest.Manifest) { m.Sections[0].ContentMap[0].Offset++ }),
		"a section that is not": edit(true, func(m *manifest.Manifest) { m.Sections = m.Sections[1:] }),
		"another tool":          edit(true, func(m *manifest.Manifest) { m.HashTools = m.HashFull }),
		"another prompt":        edit(true, func(m *manifest.Manifest) { m.HashFull = m.HashTools }),
		"another fingerprint":   edit(true, func(m *manifest.Manifest) { m.FingerprintFull = m.FingerprintTools }),
		"a lost record": func(_ *testing.T, lines [][]byte, _ map[string]string) [][]byte {
			return append(lines[:2], lines[4:]...)
		},
		"an order": func(_ *testing.T, lines [][]byte, _ map[string]string) [][]byte {
			lines[1], lines[len(lines)-1] = lines[len(lines)-1], lines[1]
			return lines
		},
		"blanks": func(_ *testing.T, lines [][]byte, _ map[string]string) [][]byte {
			lines[0] = append([]byte("{ "), lines[0][1:]...)
			return lines
		},
		"a text": func(_ *testing.T, lines [][]byte, texts map[string]string) [][]byte {
			for hash := range texts {
				texts[hash] += "!"
			}
			return lines
		},
		"a deleted text": func(_ *testing.T, lines [][]byte, texts map[string]string) [][]byte {
			for hash := range texts {
				delete(texts, hash)
			}
			return lines
		},
	}
}

func verifyPy(t *testing.T, python string, lines [][]byte, texts map[string]string, key []byte) (said string, ok bool) {
	t.Helper()
	dir := t.TempDir()
	var kept strings.Builder
	for hash, text := range texts {
		row, err := json.Marshal(map[string]string{"hash": hash, "text": text})
		if err != nil {
			t.Fatal(err)
		}
		kept.Write(append(row, '\n'))
	}
	writeFile(t, filepath.Join(dir, "log.jsonl"), string(bytes.Join(lines, []byte("\n")))+"\n")
	writeFile(t, filepath.Join(dir, "texts.jsonl"), kept.String())
	writeFile(t, filepath.Join(dir, "chain.key"), string(key)+"\n")
	writeFile(t, filepath.Join(dir, "fingerprint.key"), "of fingerprints\n")
	program := filepath.Join(root(t), "examples", "verify-py", "verify.py")
	c := exec.CommandContext(t.Context(), python, program, "log.jsonl", "--texts", "texts.jsonl", "--chain-key", "chain.key", "--fingerprint-key", "fingerprint.key")
	c.Dir, c.Env = dir, append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	out, err := c.CombinedOutput()
	return string(out), err == nil
}

package history

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/grapnelhq/grapnel/phases"
)

func TestTokensFor(t *testing.T) {
	t.Parallel()

	for _, row := range modelTokens() {
		u, err := url.Parse(row.Source)
		if _, bad := time.Parse(time.DateOnly, row.Seen); err != nil || u.Scheme != "https" || bad != nil {
			t.Errorf("%s: source %q of %q", row.match, row.Source, row.Seen)
		}
		if row.Factor < 1 || row.Safety <= 1 || !row.Listed {
			t.Errorf("%s: factor %v, safety %v, listed %v", row.match, row.Factor, row.Safety, row.Listed)
		}
	}
	for model, want := range map[string]float64{
		"claude-3-5-sonnet-latest": 1.18, "claude-sonnet-4-20250514": 1.18, "claude-haiku-4-5-20251001": 1.18, "claude-opus-4-6": 1.18,
		"claude-opus-4-7": 1.53, "claude-opus-4-8": 1.53, "claude-sonnet-5": 1.53, "Anthropic/Claude-Opus-5.5": 1.53,
		"models/gemini-3-pro": 1.08, "gpt-5": 1, "gpt-4": 1, "gpt-7": 0, "llama": 0, "": 0,
	} {
		got := TokensFor(model)
		if got.Listed != (want > 0) || want > 0 && got.Factor != want {
			t.Errorf("TokensFor(%q) = %+v, want the factor %v", model, got, want)
		}
	}
	for model, want := range map[string]Encoding{"": Cl100kBase, "gpt-4-turbo": Cl100kBase, "ft:gpt-4o:org::id": O200kBase, "o3-mini": O200kBase, "not-gpt-5": O200kBase} {
		if got := EncodingFor(model); got != want {
			t.Errorf("EncodingFor(%q) = %s, want %s", model, got, want)
		}
	}
}

// The kinds of text that tokenizers treat differently.
const (
	latin = iota
	cyrillic
	ideographs
	code
	data
)

func kindOf(s string) int {
	var letters, marks, wide, cyr int
	for _, r := range s {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana):
			wide++
		case unicode.Is(unicode.Cyrillic, r):
			cyr++
		case unicode.IsLetter(r):
			letters++
		case strings.ContainsRune("{}[]():;=\"\t_", r):
			marks++
		}
	}
	switch {
	case wide > letters:
		return ideographs
	case cyr > letters:
		return cyrillic
	case strings.HasPrefix(strings.TrimSpace(s), "{") || strings.HasPrefix(strings.TrimSpace(s), "["):
		return data
	case marks*12 > letters:
		return code
	}
	return latin
}

// provider is a tokenizer that differs from the counter's: a factor for each kind of text, something for each part
// of a request, and an introduction of its own.
type provider struct {
	model        string
	factors      [5]float64
	entry, intro int
}

func providersOf() []provider {
	return []provider{
		{"gpt-5", [5]float64{1, 1, 1, 1, 1}, 7, 12},
		{"claude-opus-5", [5]float64{1.50, 1.32, 1.20, 1.66, 1.58}, 6, 346},
		{"claude-sonnet-4-5", [5]float64{1.12, 1.25, 1.35, 1.24, 1.18}, 6, 346},
		{"gemini-3-pro", [5]float64{1.06, 0.94, 0.86, 1.22, 1.28}, 3, 60},
		{"unheard-of-1", [5]float64{1.25, 1.42, 1.45, 1.30, 1.36}, 9, 150},
	}
}

func (p provider) charge(count func(string) int, in Input, w Window) int {
	total := float64(p.intro)
	add := func(s string) { total += float64(p.entry) + float64(count(s))*p.factors[kindOf(s)] }
	for _, s := range in.Fixed {
		add(s)
	}
	for _, tool := range in.Tools {
		add(tool.Name + tool.Description)
		add(string(tool.InputSchema))
	}
	for _, list := range [][]Entry{w.Entries, in.Turn} {
		for _, e := range list {
			add(e.Text)
			for _, c := range e.Calls {
				add(string(c.Arguments))
			}
			for _, r := range e.Results {
				add(r.Text)
			}
		}
	}
	return int(math.Ceil(total))
}

// corpus has real texts by kind.
func corpus(t *testing.T) map[string][]string {
	t.Helper()
	read := func(pattern string) (out []string) {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(text))
		}
		return out
	}
	return map[string][]string{
		"english": read("../docs/*.md"),
		"code":    read("../compiler/*.go"),
		"json":    read("../providers/*/testdata/*.json"),
		"german": {`Die Verwaltung prüft jeden Antrag einzeln und teilt den Antragstellern das Ergebnis schriftlich mit. Wer mit der Entscheidung nicht einverstanden ist,
kann innerhalb von vier Wochen Widerspruch einlegen. Bitte fügen Sie alle Unterlagen bei, die für die Bearbeitung notwendig sind, insbesondere Nachweise über Einkommen,
Wohnverhältnisse und Versicherungen. Unvollständige Anträge verzögern das Verfahren erheblich. `},
		"russian": {`Совет рассмотрел предложение и решил отложить голосование до следующего заседания. Участники обсудили бюджет, сроки работ и состав рабочей группы.
Представитель заказчика попросил уточнить требования к безопасности и описать порядок приёмки. Протокол будет разослан всем участникам до конца недели. `},
		"chinese": {`系统在启动时会读取配置文件，并检查每个插件的权限。如果某个插件没有在规定时间内回应，主机会终止它的进程，然后按照退避策略重新启动。
管理员可以在日志中看到每次失败的原因，也可以通过命令行工具查看当前的状态。请不要手动修改数据库中的记录，否则校验会失败。`},
	}
}

// speech draws texts of a kind from a pool, so that each is tokenized once.
type speech struct {
	rng  *rand.Rand
	pool map[string][]string // by kind and most characters
}

const poolSize = 16

func newPool(t *testing.T) map[string][]string {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	pool := map[string][]string{}
	for kind, texts := range corpus(t) {
		for _, most := range []int{40, 900, 2500, 5000} {
			key := fmt.Sprint(kind, most)
			for range poolSize {
				from := []rune(texts[rng.IntN(len(texts))])
				want := max(40, rng.IntN(most+1))
				var b strings.Builder
				for n := 0; n < want; {
					at := rng.IntN(len(from))
					piece := from[at:min(len(from), at+want-n)]
					b.WriteString(string(piece))
					n += len(piece)
				}
				pool[key] = append(pool[key], b.String())
			}
		}
	}
	return pool
}

func (s speech) take(kind string, most int) string {
	return s.pool[fmt.Sprint(kind, most)][s.rng.IntN(poolSize)]
}

// turn is a user's message, steps with calls of tools, and an answer.
func (s speech) turn(id, language, results string) (said, rest []Entry) {
	said = []Entry{{TurnID: id, Role: RoleUser, Text: s.take(language, 900)}}
	for n := range s.rng.IntN(4) {
		call := fmt.Sprintf("%s-%d", id, n)
		arguments, _ := json.Marshal(map[string]string{"query": s.take(language, 40)}) //nolint:errchkjson // strings
		text := s.take(results, 5000)
		if results == "json" {
			text = "{" + text
		}
		rest = append(rest,
			Entry{TurnID: id, Role: RoleAssistant, Calls: []Call{{ID: call, Tool: "search", Arguments: arguments}}},
			Entry{TurnID: id, Role: RoleTool, Results: []Result{{CallID: call, Text: text}}})
	}
	return said, append(rest, Entry{TurnID: id, Role: RoleAssistant, Text: s.take(language, 2500)})
}

// TestEstimator simulates conversations with providers that count in their own way. After ten turns all estimates are
// within 5 %, and no request has more tokens than the window from the first on.
func TestEstimator(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: much work without concurrency")
	}

	pool := newPool(t)
	// Language and results, turn by turn.
	kinds := [][2]string{{"english", "code"}, {"russian", "json"}, {"chinese", "english"}, {"german", "code"}, {"english", "json"}}
	counter := newCounter(t, CounterOptions{Encoding: O200kBase, Remember: 100_000})
	for i, p := range providersOf() {
		t.Run(p.model, func(t *testing.T) {
			t.Parallel()

			simulate(t, speech{rand.New(rand.NewPCG(7, uint64(i))), pool}, p, kinds, counter.Count)
		})
	}
}

func simulate(t *testing.T, s speech, p provider, kinds [][2]string, count func(string) int) {
	t.Helper()
	const context, reserve, turns = 32_000, 4_000, 40
	in := Input{
		Fixed: []string{s.take("english", 5000)},
		Tools: []phases.Tool{{Name: "search", Description: s.take("english", 900), InputSchema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"}}}`)}},
	}
	e := NewEstimator(p.model)
	worst, full, cut := 0.0, 0.0, false
	for turn := range turns {
		kind := kinds[turn%len(kinds)]
		said, rest := s.turn(strconv.Itoa(turn), kind[0], kind[1])
		in.Turn = said
		for step := 0; ; step += 2 {
			w, err := Select(in, Settings{ContextTokens: context, ReserveTokens: reserve, Scale: e.Scale()}, count)
			if err != nil {
				t.Fatal(err)
			}
			charged := p.charge(count, in, w)
			off := math.Abs(float64(w.Fixed+w.Used)/float64(charged) - 1)
			full = max(full, float64(charged)/(context-reserve))
			cut = cut || len(w.Dropped) > 0
			if charged > context-reserve {
				t.Errorf("turn %d: a request has %d tokens, more than %d (estimate %d, %+v)", turn, charged, context-reserve, w.Fixed+w.Used, w.Scale)
			}
			if turn >= 10 {
				worst = max(worst, off)
			}
			e.Report(w, charged)
			if step+1 >= len(rest) {
				break
			}
			in.Turn = append(in.Turn, rest[step], rest[step+1])
		}
		in.Entries = append(append(in.Entries, in.Turn...), rest[len(rest)-1])
	}
	t.Logf("off by at most %.1f %%, window at most %.1f %% full", 100*worst, 100*full)
	if worst > 0.05 {
		t.Errorf("an estimate after ten turns is off by %.1f %%", 100*worst)
	}
	if !cut || full < 0.85 {
		t.Errorf("the window was at most %.1f %% full, cut: %v", 100*full, cut)
	}
}

package history

import (
	"path"
	"strings"
	"sync"
)

// ModelTokens says how the tokens of a model are estimated before its provider has reported any.
type ModelTokens struct {
	// Encoding is the vocabulary to count with.
	Encoding Encoding
	// Factor is what the provider charges for a token of the encoding.
	Factor float64
	// Safety is how much more it may charge for a single text, as a factor.
	Safety float64
	// Listed says that the model is in the table; otherwise all of this is a guess.
	Listed bool
	// Source says where the encoding and factor are from; Seen is its day, or the one on which we read it.
	Source, Seen string
}

const (
	openAI = "https://github.com/openai/tiktoken/blob/main/tiktoken/model.py"
	claude = "https://github.com/sammcj/ingest/pull/65"
	gemini = "https://github.com/alehatsman/dex/issues/183"
)

// modelTokens returns the rows of the table by patterns of [path.Match]; the first that matches counts.
func modelTokens() []struct {
	match string
	ModelTokens
} {
	exact := func(e Encoding) ModelTokens { return ModelTokens{e, 1, 1.05, true, openAI, "2026-08-16"} }
	other := func(factor float64, source, seen string) ModelTokens {
		return ModelTokens{O200kBase, factor, 1.3, true, source, seen}
	}
	o200k, cl100k := exact(O200kBase), exact(Cl100kBase)
	older, newer := other(1.18, claude, "2026-08-11"), other(1.53, claude, "2026-08-11")
	return []struct {
		match string
		ModelTokens
	}{
		{"gpt-5*", o200k},
		{"gpt-4.5*", o200k},
		{"gpt-4.1*", o200k},
		{"gpt-4o*", o200k},
		{"chatgpt-4o*", o200k},
		{"gpt-oss*", o200k}, // o200k_harmony, which differs in special tokens alone
		{"o[134]*", o200k},
		{"gpt-4", cl100k},
		{"gpt-4-*", cl100k},
		{"gpt-3.5*", cl100k},
		{"gpt-35*", cl100k},
		{"text-embedding-*", cl100k},
		{"claude-[23]*", older},
		{"claude-*-4-[789]*", newer},
		{"claude-*-4*", older},
		{"claude-*-5*", newer},
		{"gemini-*", other(1.08, gemini, "2026-08-17")},
	}
}

// TokensFor returns how a model's tokens are estimated. A path before the name ("openai/"), the prefix "ft:" and case do
// not matter. A model that the table does not list, such as a newer one, is counted with O200kBase.
func TokensFor(model string) ModelTokens {
	name := strings.TrimPrefix(strings.ToLower(model[strings.LastIndexByte(model, '/')+1:]), "ft:")
	for _, row := range modelTokens() {
		if ok, err := path.Match(row.match, name); ok && err == nil {
			return row.ModelTokens
		}
	}
	return ModelTokens{Encoding: O200kBase, Factor: 1, Safety: 1.5}
}

// Scale turns counted tokens into estimates of what a provider charges. The zero value changes nothing.
type Scale struct {
	// Factor is what the provider charges for a counted token.
	Factor float64 `json:"factor"`
	// Safety is how much more it may charge for the whole, as a factor, and Unseen for the current turn, of which nothing
	// has been reported yet. Both only bound what is chosen.
	Safety float64 `json:"safety"`
	Unseen float64 `json:"unseen"`
}

// Estimator estimates what a provider charges for the requests of one thread to one model, and learns it from what is
// reported. NewEstimator makes it. It is safe for concurrent use. One may serve several threads, as long as they hold
// texts of the same kind: languages and code differ.
type Estimator struct {
	start ModelTokens

	mu     sync.Mutex
	factor float64
	off    float64 // how far a request lately was above its estimate
	known  bool    // something was reported
}

// The least safety of a calibrated estimate, how fast a surprise is forgotten, and how much a report weighs.
const (
	leastOff = 0.04
	keepOff  = 0.9
)

// NewEstimator makes an Estimator with the numbers of [TokensFor].
func NewEstimator(model string) *Estimator {
	start := TokensFor(model)
	return &Estimator{start: start, factor: start.Factor}
}

// Scale returns the estimate as of now, for [Settings].
func (e *Estimator) Scale() Scale {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := Scale{Factor: e.factor, Safety: e.start.Safety, Unseen: e.start.Safety}
	if e.known {
		s.Safety = 1 + max(leastOff, 1.5*e.off)
	}
	return s
}

// Report says that a provider charged so many input tokens, cached ones included, for a request with this window.
// Requests that hold anything which [Select] was not told of, and numbers of several requests, lead it astray.
func (e *Estimator) Report(w Window, input int) {
	estimated := float64(w.Fixed + w.Used)
	if input <= 0 || estimated <= 0 || w.Scale.Factor <= 0 {
		return
	}
	seen := float64(input) / estimated * w.Scale.Factor
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.known {
		e.off = max(e.off*keepOff, float64(input)/estimated-1)
	}
	// The last request says most about the next one: nearly all of it is sent again.
	e.factor, e.known = seen, true
}

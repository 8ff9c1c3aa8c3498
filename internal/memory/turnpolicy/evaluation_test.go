package turnpolicy

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The document that shows the table of the evaluation, and whether to write it
// there. There is nothing to check where the document is not.
var (
	evaluationDoc = flag.String("turnpolicy.doc", "../../../docs/MEMORY.md", "document whose table of the evaluation is checked")
	updateDoc     = flag.Bool("turnpolicy.update", false, "write the table into the document")
)

// The lines between which the document has the table.
const (
	tableBegin = "<!-- turnpolicy evaluation -->"
	tableEnd   = "<!-- end of turnpolicy evaluation -->"
)

// utterance is one labelled text of the evaluation set.
type utterance struct {
	ID      string   `json:"id"`
	Lang    string   `json:"lang"`
	Intents []Intent `json:"intents"`
	Target  string   `json:"target"`
	// Hard marks what wishes nothing and looks as if it did.
	Hard bool   `json:"hard"`
	Text string `json:"text"`
}

// evaluationPart is one file of the set. The first line says where it comes from.
type evaluationPart struct {
	Provenance string `json:"provenance"`
	Part       string `json:"part"`
	utterances []utterance
}

// readPart reads testdata/evaluation/NAME.jsonl.
func readPart(t *testing.T, name string) evaluationPart {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "evaluation", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var part evaluationPart
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.DisallowUnknownFields()
		var u utterance
		into := any(&u)
		if n == 1 {
			into = &part
		}
		if err := d.Decode(into); err != nil {
			t.Fatalf("%s, line %d: %v", name, n, err)
		}
		if n > 1 {
			part.utterances = append(part.utterances, u)
		}
	}
	return part
}

// cell is a language and an intent.
type cell struct {
	lang   string
	intent Intent
}

// score counts the utterances of a cell: found and right, found and wrong, missed.
type score struct{ right, wrong, missed int }

func (s score) precision() float64 { return ratio(s.right, s.right+s.wrong) }
func (s score) recall() float64    { return ratio(s.right, s.right+s.missed) }

// ratio is 1 where there is nothing to count.
func ratio(part, all int) float64 {
	if all == 0 {
		return 1
	}
	return float64(part) / float64(all)
}

// result is how the rules do on a part.
type result struct {
	cells map[cell]score
	// targets and rightTargets count the forget targets of wishes that were found.
	targets, rightTargets int
	// hard and fooled count hard negatives, and those in which a wish was found.
	hard, fooled int
	mistakes     []string
}

// evaluate classifies a part. A wish counts from the default threshold on.
func evaluate(r *Rules, part evaluationPart) result {
	res := result{cells: map[cell]score{}}
	for _, u := range part.utterances {
		wishes := sureWishes(r.Classify(u.Text))
		var got []Intent
		for _, w := range wishes {
			got = append(got, w.Intent)
			if w.Intent == IntentForget && slices.Contains(u.Intents, IntentForget) {
				res.targets++
				if w.Target == u.Target {
					res.rightTargets++
				} else {
					res.mistakes = append(res.mistakes, fmt.Sprintf("%s: target %q, want %q (%s)", u.ID, w.Target, u.Target, w.Rule))
				}
			}
		}
		if u.Hard {
			res.hard++
			if len(got) > 0 {
				res.fooled++
			}
		}
		res.count(u, got)
		if !sameIntents(got, u.Intents) {
			res.mistakes = append(res.mistakes, fmt.Sprintf("%s: %v, want %v: %q %v", u.ID, got, u.Intents, u.Text, r.Classify(u.Text).Rules))
		}
	}
	return res
}

// count adds one utterance to the cells.
func (r *result) count(u utterance, got []Intent) {
	for _, intent := range Intents() {
		is, want := slices.Contains(got, intent), slices.Contains(u.Intents, intent)
		for _, lang := range []string{u.Lang, "all"} {
			s := r.cells[cell{lang, intent}]
			switch {
			case is && want:
				s.right++
			case is:
				s.wrong++
			case want:
				s.missed++
			}
			r.cells[cell{lang, intent}] = s
		}
	}
}

// sameIntents compares without order.
func sameIntents(a, b []Intent) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// languageOrder is that of the table.
func languageOrder() []string { return []string{"en", "de", "fr", "es", "zh", "mixed", "all"} }

// partNames are the files of the set; README.md beside them says what each is for.
func partNames() []string { return []string{"development", "held_out", "unseen"} }

// table is the Markdown of all parts.
func table(results []result, parts []evaluationPart) string {
	var b strings.Builder
	b.WriteString("| language | intent |")
	for _, p := range parts {
		fmt.Fprintf(&b, " %s: wishes | precision | recall |", p.Part)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|---|---|", len(parts)) + "\n")
	for _, lang := range languageOrder() {
		for _, intent := range Intents() {
			fmt.Fprintf(&b, "| %s | %s |", lang, intent)
			for _, r := range results {
				s := r.cells[cell{lang, intent}]
				if s == (score{}) {
					b.WriteString(" 0 | – | – |")
					continue
				}
				fmt.Fprintf(&b, " %d | %.2f | %.2f |", s.right+s.missed, s.precision(), s.recall())
			}
			b.WriteString("\n")
		}
	}
	for i, r := range results {
		fmt.Fprintf(&b, "\n%s: %d utterances; a wish found in %d of %d hard negatives; %d of %d forget targets to the letter.\n",
			parts[i].Part, len(parts[i].utterances), r.fooled, r.hard, r.rightTargets, r.targets)
	}
	return b.String()
}

// floors are the committed figures below which the evaluation fails.
type floors map[string]struct {
	// Cells are by "language intent": precision and recall.
	Cells map[string][2]float64 `json:"cells"`
	// Fooled is the greatest share of hard negatives in which a wish is found.
	Fooled float64 `json:"fooled"`
	// Targets is the least share of forget targets that are right.
	Targets float64 `json:"targets"`
}

// check compares a result with its floors.
func (f floors) check(t *testing.T, part string, r result) {
	t.Helper()
	floor, ok := f[part]
	if !ok {
		t.Fatalf("%s: no floors", part)
	}
	for c, s := range r.cells {
		name := c.lang + " " + string(c.intent)
		least, ok := floor.Cells[name]
		if !ok {
			t.Errorf("%s: no floor for %s", part, name)
		}
		if s.precision() < least[0] || s.recall() < least[1] {
			t.Errorf("%s: %s has precision %.3f and recall %.3f, and needs %v", part, name, s.precision(), s.recall(), least)
		}
	}
	if got := ratio(r.fooled, r.hard); got > floor.Fooled {
		t.Errorf("%s: a wish in %.3f of the hard negatives, and at most %.3f may be", part, got, floor.Fooled)
	}
	if got := ratio(r.rightTargets, r.targets); got < floor.Targets {
		t.Errorf("%s: %.3f of the targets are right, and needs %.3f", part, got, floor.Targets)
	}
}

// TestEvaluation holds the rules to the evaluation set, and the document to the
// table; -v prints it. Mistakes are only printed for the development part, so that
// nobody makes rules with the others in sight.
func TestEvaluation(t *testing.T) {
	t.Parallel()
	rules := builtin(t)
	var parts []evaluationPart
	var results []result
	for _, name := range partNames() {
		parts = append(parts, readPart(t, name))
		results = append(results, evaluate(rules, parts[len(parts)-1]))
	}
	for _, m := range results[0].mistakes {
		t.Log(m)
	}
	text := table(results, parts)
	t.Log("\n" + text)
	data, err := os.ReadFile(filepath.Join("testdata", "evaluation", "floors.json"))
	if err != nil {
		t.Fatal(err)
	}
	var least floors
	if err := json.Unmarshal(data, &least); err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		least.check(t, parts[i].Part, r)
	}
	// Of its own, so that the figures count as tested where there is no document.
	t.Run("document", func(t *testing.T) {
		t.Parallel()
		checkTable(t, text)
	})
}

// checkTable compares the document's table, or writes it. It skips the test if there
// is no document, and for no other reason.
func checkTable(t *testing.T, want string) {
	t.Helper()
	data, err := os.ReadFile(*evaluationDoc)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("there is no %s to compare the table with", *evaluationDoc)
	}
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(data), tableBegin+"\n")
	got, behind, closed := strings.Cut(rest, tableEnd)
	if !found || !closed {
		t.Fatalf("%s has no lines %q and %q", *evaluationDoc, tableBegin, tableEnd)
	}
	want = "\n" + want + "\n"
	switch {
	case got == want:
	case *updateDoc:
		if err := os.WriteFile(*evaluationDoc, []byte(before+tableBegin+"\n"+want+tableEnd+behind), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s has another table: run the test with -turnpolicy.update", *evaluationDoc)
	}
}

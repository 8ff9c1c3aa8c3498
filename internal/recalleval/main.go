// Recalleval compares how well the memory finds things with other ways to search, on public data that nobody of this
// project wrote: the 10 conversations of LoCoMo (Maharana et al., 2024) with 1,986 questions, and the questions of
// XQuAD, JSQuAD and KorQuAD in 14 languages. "make eval" runs it; it is a module of its own because of bleve.
//
// Each turn of a conversation is an item, "Speaker: text", in a workspace of its conversation; its id there ("D3:11")
// is how a question names its evidence. Turns of a session are taken to be a minute apart, and questions are asked a
// day after the last. In the other sets each sentence of a paragraph is an item, and the evidence of a question is the
// sentence in which its answer begins.
//
// R@k is the share of a question's evidence among the first k items, MRR one over the rank of the first of it. The
// halves are fixed by the parity of an FNV-1a hash of the question: parameters are chosen on the even one.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

func main() {
	data := flag.String("data", "", "a directory with the files of the sets; what is missing is downloaded there")
	flag.Parse()
	if err := run(context.Background(), os.Stdout, *data); err != nil {
		fmt.Fprintln(os.Stderr, "recalleval:", err)
		os.Exit(1)
	}
}

// question is asked of one set of items.
type question struct {
	text     string
	evidence map[string]bool // ids of items
	heldOut  bool
}

// item is what is remembered.
type item struct {
	id, text string
	at       time.Time
}

// collection is what a question is asked of: a conversation, or the paragraphs of a language.
type collection struct {
	name      string
	items     []item
	questions []question
	now       time.Time
}

// system finds the ids of the best ten items for a text.
type system struct {
	name string
	open func(ctx context.Context, c *collection) (search func(text string) ([]string, error), done func() error, err error)
}

const depth = 10

// figures are sums over questions.
type figures struct{ n, r5, r10, mrr float64 }

func (f *figures) add(evidence map[string]bool, found []string) {
	f.n++
	first := 0.0
	for rank, id := range found[:min(depth, len(found))] {
		if !evidence[id] {
			continue
		}
		if first == 0 {
			first = 1 / float64(rank+1)
		}
		f.r10 += 1 / float64(len(evidence))
		if rank < 5 {
			f.r5 += 1 / float64(len(evidence))
		}
	}
	f.mrr += first
}

func (f *figures) String() string {
	return fmt.Sprintf("%.3f | %.3f | %.3f", f.r5/f.n, f.r10/f.n, f.mrr/f.n)
}

// judge asks a system all questions of some collections.
func judge(ctx context.Context, s system, all []collection) (tuning, heldOut figures, err error) {
	for n := range all {
		search, done, err := s.open(ctx, &all[n])
		if err != nil {
			return tuning, heldOut, fmt.Errorf("%s, %s: %w", s.name, all[n].name, err)
		}
		for _, q := range all[n].questions {
			found, err := search(q.text)
			if err != nil {
				return tuning, heldOut, fmt.Errorf("%s, %q: %w", s.name, q.text, err)
			}
			half := &tuning
			if q.heldOut {
				half = &heldOut
			}
			half.add(q.evidence, found)
		}
		if err := done(); err != nil {
			return tuning, heldOut, err
		}
	}
	return tuning, heldOut, nil
}

func run(ctx context.Context, out io.Writer, data string) error {
	if data == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return err
		}
		data = filepath.Join(cache, "grapnel-eval")
	}
	conversations, err := locomo(ctx, data)
	if err != nil {
		return err
	}
	tuning, heldOut := 0, 0
	for _, c := range conversations {
		for _, q := range c.questions {
			if q.heldOut {
				heldOut++
			} else {
				tuning++
			}
		}
	}
	fmt.Fprintf(out, "| LoCoMo | tuning (%d): R@5 | R@10 | MRR | held out (%d): R@5 | R@10 | MRR |\n|---|---|---|---|---|---|---|\n", tuning, heldOut)
	for _, s := range systems() {
		tuning, heldOut, err := judge(ctx, s, conversations)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "| %s | %v | %v |\n", s.name, &tuning, &heldOut)
	}
	fmt.Fprint(out, "\n| language | items | questions | FTS5: R@5 | MRR | Grapnel: R@5 | MRR |\n|---|---|---|---|---|---|---|\n")
	for _, language := range languages() {
		c, err := language.read(ctx, data)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "| %s | %d | %d ", language.name, len(c.items), len(c.questions))
		for _, s := range []system{fts5(), grapnel()} {
			a, b, err := judge(ctx, s, []collection{c})
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "| %.3f | %.3f ", (a.r5+b.r5)/(a.n+b.n), (a.mrr+b.mrr)/(a.n+b.n))
		}
		fmt.Fprintln(out, "|")
	}
	return nil
}

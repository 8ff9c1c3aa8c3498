package gateway

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/tree"
)

// changeOf makes a change of a thing, whose name begins with what it is.
func changeOf(seq tree.Seq, name string) tree.Change {
	c := tree.Change{Seq: seq, WorkspaceID: "w", Action: tree.Renamed, Actor: "ada"}
	switch name[0] {
	case 'd':
		c.Action, c.Doc = tree.DocSaved, &tree.Summary{ID: name, FolderID: tree.FolderID(name), Version: int64(seq)}
	case 'f':
		c.Folder = &tree.Folder{ID: name}
	case 't':
		c.Thread = &tree.Thread{ID: name}
	default:
		c.Workspace = &tree.Workspace{ID: "w"}
	}
	return c
}

// TestDigestMissesNothing: any changes give notes of every thing, each with its last change. Whoever has got some of them and goes on from the
// seq of the last one is told of everything else, and places never go back.
func TestDigestMissesNothing(t *testing.T) {
	t.Parallel()

	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		var in []tree.Change
		seq := tree.Seq(rng.IntN(5))
		for range 1 + rng.IntN(30) {
			if rng.IntN(3) > 0 {
				seq += 1 + tree.Seq(rng.IntN(3))
			}
			in = append(in, changeOf(seq+1, fmt.Sprintf("%c%d", "dftw"[rng.IntN(4)], rng.IntN(6))))
		}
		checkResumes(t, seed, in)
	}
}

// checkResumes cuts the notes of changes at each place.
func checkResumes(t *testing.T, seed uint64, in []tree.Change) {
	t.Helper()
	notes := digest(in, 2*len(in))
	last, got := map[string]tree.Seq{}, map[string]tree.Seq{}
	for i := range in {
		last[itemOf(&in[i])] = in[i].Seq
	}
	for _, n := range notes {
		got[itemOf(&n.change)] = n.change.Seq
	}
	if diff := cmp.Diff(got, last); diff != "" {
		t.Fatalf("seed %d: things (-got +want):\n%s", seed, diff)
	}
	for cut := range notes {
		if cut > 0 && notes[cut].resume < notes[cut-1].resume {
			t.Fatalf("seed %d: the place goes back from %d to %d", seed, notes[cut-1].resume, notes[cut].resume)
		}
		known := map[string]tree.Seq{}
		for _, n := range notes[:cut+1] {
			known[itemOf(&n.change)] = n.change.Seq
		}
		for i := range in {
			if c := &in[i]; c.Seq <= notes[cut].resume && c.Seq > known[itemOf(c)] && !laterIn(in, c, notes[cut].resume) {
				t.Fatalf("seed %d: who goes on from %d never learns of %s at %d", seed, notes[cut].resume, itemOf(c), c.Seq)
			}
		}
	}
}

// laterIn reports whether the thing of a change changes again behind a place.
func laterIn(in []tree.Change, c *tree.Change, place tree.Seq) bool {
	for i := range in {
		if in[i].Seq > place && itemOf(&in[i]) == itemOf(c) {
			return true
		}
	}
	return false
}

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

func TestDigest(t *testing.T) {
	t.Parallel()

	type row struct {
		seq, resume tree.Seq
		thing       string
	}
	for _, tt := range []struct {
		name string
		in   []row
		want []row
	}{
		{"one", []row{{1, 0, "f1"}}, []row{{1, 1, "folder/f1"}}},
		{"the last of each thing, in its place", []row{{1, 0, "d1"}, {2, 0, "d2"}, {3, 0, "d1"}}, []row{{2, 1, "tree doc/d2"}, {2, 2, "doc/d2"}, {3, 2, "tree doc/d1"}, {3, 3, "doc/d1"}}},
		{"a document is not its folder", []row{{1, 0, "d1"}, {2, 0, "f1"}, {3, 0, "t1"}, {4, 0, "w"}}, []row{{1, 0, "tree doc/d1"}, {1, 1, "doc/d1"}, {2, 2, "folder/f1"}, {3, 3, "thread/t1"}, {4, 4, "workspace"}}},
		{"within a transaction nobody goes on from its end", []row{{1, 0, "t1"}, {5, 0, "t2"}, {5, 0, "t3"}, {5, 0, "f1"}, {6, 0, "t4"}}, []row{{1, 1, "thread/t1"}, {5, 4, "thread/t2"}, {5, 4, "thread/t3"}, {5, 5, "folder/f1"}, {6, 6, "thread/t4"}}},
		{"a transaction whose last change is told later", []row{{5, 0, "t1"}, {5, 0, "t2"}, {6, 0, "t2"}}, []row{{5, 5, "thread/t1"}, {6, 6, "thread/t2"}}},
		{"documents count twice", []row{{1, 0, "d1"}, {2, 0, "d2"}, {3, 0, "d3"}}, []row{{3, 3, "gap"}}},
		{"too many", []row{{1, 0, "t1"}, {2, 0, "t2"}, {3, 0, "t3"}, {4, 0, "t4"}, {5, 0, "t5"}, {6, 0, "t6"}, {6, 0, "t1"}}, []row{{6, 6, "gap"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			var in []tree.Change
			for _, r := range tt.in {
				in = append(in, changeOf(r.seq, r.thing))
			}
			var got []row
			for _, n := range digest(in, 5) {
				name := itemOf(&n.change)
				switch {
				case n.gap:
					name = "gap"
				case n.tree:
					name = "tree " + name
				}
				got = append(got, row{n.change.Seq, n.resume, name})
			}
			if diff := cmp.Diff(got, tt.want, cmp.AllowUnexported(row{})); diff != "" {
				t.Errorf("notes (-got +want):\n%s", diff)
			}
		})
	}
}

// TestDigestMissesNothing: whoever has got some of the notes and goes on from the
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

// FuzzDigest: any changes give notes of every thing, each with its last change.
func FuzzDigest(f *testing.F) {
	f.Add([]byte("d1f1d1"), uint8(3))
	f.Add([]byte("w"), uint8(0))
	f.Fuzz(func(t *testing.T, names []byte, step uint8) {
		var in []tree.Change
		last := map[string]tree.Seq{}
		for i, b := range names {
			c := changeOf(tree.Seq(i/(int(step%4)+1))+1, fmt.Sprintf("%c%d", "dftw"[b%4], b/4%8))
			in, last[itemOf(&c)] = append(in, c), c.Seq
		}
		if len(in) == 0 {
			return
		}
		got := map[string]tree.Seq{}
		for _, n := range digest(in, 2*len(in)) {
			got[itemOf(&n.change)] = n.change.Seq
		}
		if diff := cmp.Diff(got, last); diff != "" {
			t.Errorf("things (-got +want):\n%s", diff)
		}
		checkResumes(t, 0, in)
	})
}

// TestNoteShapes checks what is sent: the wire's names, and null for what is not
// there.
func TestNoteShapes(t *testing.T) {
	t.Parallel()

	archived := changeOf(3, "d1")
	archived.Action = tree.DocArchived
	for _, tt := range []struct {
		name    string
		note    note
		affects *int
		method  string
		want    string
	}{
		{"a document", note{change: changeOf(3, "d1"), resume: 3}, new(7), NotifyDoc, `{"seq":3,"workspace_id":"w","folder_id":"d1","action":"saved","actor":"ada","summary":{"id":"d1","folder_id":"d1","status":"","content_sha256":"","version":3,"chars":0,"updated_at":"0001-01-01T00:00:00Z"},"affects_count":7}`},
		{"an archived one", note{change: archived, resume: 2}, nil, NotifyDoc, `{"seq":2,"workspace_id":"w","folder_id":"d1","action":"archived","actor":"ada","summary":null,"affects_count":null}`},
		{"a document in a tree", note{change: archived, resume: 2, tree: true}, nil, NotifyTree, `{"seq":2,"workspace_id":"w","action":"archived","actor":"ada","workspace":null,"folder":null,"thread":null,"agents_doc":{"id":"d1","folder_id":"d1","status":"","content_sha256":"","version":3,"chars":0,"updated_at":"0001-01-01T00:00:00Z"},"gap":false}`},
		{"a folder", note{change: changeOf(3, "f1"), resume: 3}, nil, NotifyTree, `{"seq":3,"workspace_id":"w","action":"renamed","actor":"ada","workspace":null,"folder":{"id":"f1","parent_id":null,"name":""},"thread":null,"agents_doc":null,"gap":false}`},
		{"a gap", gapNote("w", 9), nil, NotifyTree, `{"seq":9,"workspace_id":"w","action":"gap","actor":"","workspace":null,"folder":null,"thread":null,"agents_doc":null,"gap":true}`},
	} {
		if err := tt.note.encode(tt.affects); err != nil {
			t.Fatal(err)
		}
		if tt.note.method != tt.method || string(tt.note.params) != tt.want {
			t.Errorf("%s: %s\n got %s\nwant %s", tt.name, tt.note.method, tt.note.params, tt.want)
		}
	}
}

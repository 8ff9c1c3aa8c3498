package lazy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/agentsdoctest"
)

// TestEncodeStaysSmall encodes states of all sizes: they come back whole where
// they fit, and within the limit where they do not.
func TestEncodeStaysSmall(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(3, 4))
	shrunk := 0
	for range agentsdoctest.Rounds(300) {
		s := randomState(rng)
		full, err := marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		data, err := Encode(s)
		if err != nil || len(data) > MaxBytes {
			t.Fatalf("%d bytes: %v", len(data), err)
		}
		got, err := Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if len(full) <= MaxBytes {
			if diff := cmp.Diff(got, s); diff != "" {
				t.Fatalf("(-got +want):\n%s", diff)
			}
			continue
		}
		shrunk++
		checkShrunk(t, s, got)
		if len(data) < MaxBytes/2 && len(s.Delivered) > 0 {
			t.Errorf("%d bytes are left of %d: too much was forgotten", len(data), len(full))
		}
	}
	if shrunk == 0 || shrunk > agentsdoctest.Rounds(250) {
		t.Errorf("%d states of 300 were too long: the test sees too little", shrunk)
	}
}

// checkShrunk checks that what was forgotten was forgotten in the right order.
func checkShrunk(t *testing.T, was, is State) {
	t.Helper()
	if is.Root != was.Root || is.Dir != was.Dir || is.Epoch != was.Epoch {
		t.Error("the session is another one")
	}
	gone := func(v Version) bool { return v.Gone }
	lostVersion, lostQueue := len(is.Delivered) < len(was.Delivered), len(is.Queue) < len(was.Queue)
	switch {
	case (lostVersion || lostQueue) && len(is.Covered) > 0:
		t.Error("covered directories are left")
	case lostQueue && slices.ContainsFunc(is.Delivered, gone):
		t.Error("the queue was forgotten before versions of files that are gone")
	case len(is.Initial) < len(was.Initial) && len(is.Delivered) > 0:
		t.Error("the chain was forgotten before what was delivered")
	}
	if n := len(is.Delivered); n > 0 && is.Delivered[n-1] != was.Delivered[len(was.Delivered)-1] && !was.Delivered[len(was.Delivered)-1].Gone {
		t.Error("the version that was delivered last is forgotten, and others are not")
	}
}

// randomState is a state of any size with hostile paths.
func randomState(rng *rand.Rand) State {
	scale := 1 << rng.IntN(9)
	path := func() string {
		names := []string{"a", "long-name-of-a-directory", "日本", "q\"<\n", "\xff\xfe", strings.Repeat("n", 200), "base64:"}
		out := "/root"
		var outSb257 strings.Builder
		for range 1 + rng.IntN(5) {
			outSb257.WriteString("/" + names[rng.IntN(len(names))] + strconv.Itoa(rng.IntN(50)))
		}
		out += outSb257.String()
		return out
	}
	versions := func(n int) []Version {
		list := []Version{}
		for i := range rng.IntN(n + 1) {
			list = append(list, Version{
				Path: path() + strconv.Itoa(i), SHA256: fmt.Sprintf("%064x", rng.Uint64()), MTimeMs: rng.Int64N(1 << 41), Size: rng.Int64N(1 << 20), Gone: rng.IntN(4) == 0,
			})
			if rng.IntN(5) == 0 {
				list[i].RealPath = path()
			}
		}
		return list
	}
	paths := func(n int) []string {
		list := []string{}
		for range rng.IntN(n + 1) {
			list = append(list, path())
		}
		return list
	}
	return State{
		Schema: Schema, Epoch: rng.IntN(5), Root: "/root", Dir: path(), Markers: []string{".git"},
		Initial: versions(scale / 4), Delivered: versions(scale * 2), Covered: paths(scale), Queue: paths(scale),
	}
}

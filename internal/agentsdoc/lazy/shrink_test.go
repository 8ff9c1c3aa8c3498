package lazy

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEncodeForgetsInOrder: of a state that is too long no more is dropped than has to be, in this order: covered directories,
// versions of files that are gone, the queue, the oldest versions, the first prompt. One that cannot be made short is an error.
func TestEncodeForgetsInOrder(t *testing.T) {
	t.Parallel()
	const each = 64
	var paths []string
	var versions, gone []Version
	for i := range each {
		paths = append(paths, "/"+strings.Repeat("n", 110)+strconv.Itoa(i))
		v := Version{Path: "/q\"<\n\xff" + strconv.Itoa(i), SHA256: strings.Repeat("0a", 32)}
		versions = append(versions, v)
		v.Gone, v.RealPath = true, paths[i]
		gone = append(gone, v)
	}
	s := State{Schema: Schema, Dir: "/d", Markers: []string{".git"}, Initial: versions, Delivered: append(gone, versions...), Covered: paths, Queue: paths}
	dropped := map[int]bool{}
	for root := 0; ; root += 1500 {
		s.Root = "/" + strings.Repeat("r", root)
		data, err := Encode(s)
		if err != nil {
			break
		}
		got, err := Decode(data)
		if err != nil || len(data) > MaxBytes {
			t.Fatalf("%d bytes: %v", len(data), err)
		}
		if full, err := marshal(s); err == nil && len(full) <= MaxBytes {
			if diff := cmp.Diff(got, s); diff != "" {
				t.Fatalf("(-got +want):\n%s", diff)
			}
			continue
		}
		left := max(0, len(got.Delivered)-each) // of those that are gone
		kept := []int{len(got.Covered), left, len(got.Queue), len(got.Delivered) - left, len(got.Initial)}
		for i, n := range kept {
			if n < each {
				dropped[i] = true
			}
			if i > 0 && n < each && kept[i-1] > 0 {
				t.Fatalf("in the wrong order: %d are left", kept)
			}
		}
		if n := len(got.Delivered); len(data) < MaxBytes/2 || n > 0 && got.Delivered[n-1] != versions[each-1] {
			t.Fatalf("%d bytes, and %d are left: too much was forgotten, or not the oldest", len(data), kept)
		}
	}
	if len(dropped) != 5 {
		t.Errorf("only %v were forgotten: the test sees too little", dropped)
	}
}

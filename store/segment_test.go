package store

import (
	"bytes"
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSlots: what is packed into slots is what merged slots give back, without the ids that are gone.
func TestSlots(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	want := map[mark][]int64{}
	var slots [][]byte
	for range 5 {
		part := map[mark][]int64{}
		for range 200 {
			k, id := mark(r.Uint64N(50)<<56), r.Int64N(5000)
			part[k] = append(part[k], id)
			if id%7 != 0 {
				want[k] = append(want[k], id)
			}
		}
		var slot []byte
		for _, k := range slices.Sorted(maps.Keys(part)) {
			slot = appendEntry(slot, k, ascending(part[k]))
		}
		slots = append(slots, slot)
	}
	for k := range want {
		want[k] = ascending(want[k])
	}
	got := map[mark][]int64{}
	before := mark(0)
	for k, ids := range mergeSlots(slots, func(id int64) bool { return id%7 != 0 }) {
		if k < before {
			t.Errorf("mark %d after %d", k, before)
		}
		before = k
		if len(ids) > 0 {
			got[k] = slices.Clone(ids)
		}
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("merged (-got +want):\n%s", diff)
	}
}

// FuzzSlot: a slot that somebody has tampered with is read without a panic, and without more memory than its length.
func FuzzSlot(f *testing.F) {
	f.Add(appendEntry(appendEntry(nil, 1, []int64{1, 2, 1 << 40}), 9<<60, []int64{7}))
	f.Add(binary.AppendUvarint(make([]byte, 8), 1<<63))
	f.Add(bytes.Repeat([]byte{0xff}, 40))
	f.Fuzz(func(t *testing.T, slot []byte) {
		total := 0
		for _, packed := range entries(slot) {
			total += len(packed) + 9
			if n := len(appendIDs(nil, packed)); n > len(packed) {
				t.Errorf("%d ids of %d bytes", n, len(packed))
			}
		}
		if total > len(slot) {
			t.Errorf("%d bytes of entries in a slot of %d", total, len(slot))
		}
		for range mergeSlots([][]byte{slot, slot}, func(int64) bool { return true }) {
		}
	})
}

// TestSlotOf: each mark is in the slot of its first bits.
func TestSlotOf(t *testing.T) {
	for _, tt := range []struct {
		mark mark
		bits int
		want int64
	}{{1 << 63, 0, 0}, {1<<64 - 1, 0, 0}, {1 << 63, 1, 1}, {1<<63 - 1, 1, 0}, {1<<64 - 1, maxSlotBits, 1<<maxSlotBits - 1}} {
		if got := tt.mark.slot(tt.bits); got != tt.want {
			t.Errorf("mark %x with %d bits is in slot %d, want %d", uint64(tt.mark), tt.bits, got, tt.want)
		}
	}
	g := segment{ID: 3}
	if next := (segment{ID: 4}); g.row(1<<maxSlotBits) != next.row(0) {
		t.Errorf("the rows of segment 3 end at %d, those of 4 begin at %d", g.row(1<<maxSlotBits), next.row(0))
	}
}

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
	err := mergeSlots(slots, func(id int64) bool { return id%7 != 0 }, func(k mark, ids []int64) error {
		if k < before {
			t.Errorf("mark %d after %d", k, before)
		}
		before = k
		if len(ids) > 0 {
			got[k] = slices.Clone(ids)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("merged (-got +want):\n%s", diff)
	}
}

// FuzzSlot: a slot that somebody has tampered with is read without a panic, and without more memory than its length; or it
// is refused.
func FuzzSlot(f *testing.F) {
	f.Add(appendEntry(appendEntry(nil, 1, []int64{1, 2, 1 << 40}), 9<<60, []int64{7}))
	f.Add(binary.AppendUvarint(make([]byte, 8), 1<<63))
	f.Add(bytes.Repeat([]byte{0xff}, 40))
	f.Add(append(binary.AppendUvarint(make([]byte, 8), 10), binary.AppendUvarint(nil, 1<<63)...))
	f.Fuzz(func(t *testing.T, slot []byte) {
		n := 0
		err := mergeSlots([][]byte{slot, slot}, func(int64) bool { return true }, func(_ mark, ids []int64) error {
			if n += len(ids); len(ids) > 0 && ids[0] < 0 || !slices.IsSorted(ids) {
				t.Errorf("ids %d", ids)
			}
			return nil
		})
		if n > len(slot) || err != nil && err != errIndexDamaged { //nolint:errorlint // it comes back as it is
			t.Errorf("%d ids of %d bytes, %v", n, len(slot), err)
		}
		found := map[mark][]int64{0: nil}
		if collectErr := collect(slot, found); err == nil && collectErr != nil {
			t.Errorf("a search says %v", collectErr)
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

// TestSegmentCheck: no segment has rows outside of its own range of numbers.
func TestSegmentCheck(t *testing.T) {
	good := segment{ID: maxSegment, Bits: maxSlotBits}
	if err := good.check(); err != nil || good.row(1<<maxSlotBits) < good.row(0) {
		t.Errorf("the last segment: %v, rows from %d to %d", err, good.row(0), good.row(1<<maxSlotBits))
	}
	for _, bad := range []segment{{}, {ID: -1}, {ID: maxSegment + 1}, {ID: 1, Bits: -1}, {ID: 1, Bits: maxSlotBits + 1}, {ID: 1, Records: -1}, {ID: 1, Bytes: -1}} {
		if bad.check() == nil {
			t.Errorf("nobody minds %+v", bad)
		}
	}
}

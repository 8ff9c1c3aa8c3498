package store

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/grapnelhq/grapnel/manifest"
)

// mark is a term as it is indexed: nobody can choose a term that has another one's mark.
type mark uint64

func markOf(t manifest.Term) mark {
	sum := sha256.Sum256([]byte(string(t.Kind) + "\x00" + t.Value))
	return mark(binary.BigEndian.Uint64(sum[:]))
}

// slot returns which slot of a segment with so many bits holds a mark.
func (k mark) slot(bits int) int64 { return int64(k >> (64 - bits)) } //nolint:gosec // at most maxSlotBits

// A slot of a segment is a list of marks in ascending order, each with the ids of the records that have it: 8 bytes of
// mark, the length of the ids, and the ids, ascending, each as the difference from the one before, as varints.
const (
	slotBytes   = 4096 // about what a slot should have
	maxSlotBits = 20
)

// slotBits returns by how many bits of their marks to divide so many bytes.
func slotBits(size int64) int { return min(bits.Len64(uint64(size/slotBytes)), maxSlotBits) } //nolint:gosec // sizes are positive

// appendEntry appends one mark to a slot; without ids it appends nothing.
func appendEntry(slot []byte, k mark, ids []int64) []byte {
	if len(ids) == 0 {
		return slot
	}
	var packed []byte
	var before int64
	for _, id := range ids {
		packed = binary.AppendUvarint(packed, uint64(id-before)) //nolint:gosec // ids ascend
		before = id
	}
	slot = binary.BigEndian.AppendUint64(slot, uint64(k))
	slot = binary.AppendUvarint(slot, uint64(len(packed)))
	return append(slot, packed...)
}

// nextEntry takes the first mark off a slot, with its ids as they are packed.
func nextEntry(slot []byte) (k mark, ids, rest []byte, err error) {
	if len(slot) < 8 {
		return 0, nil, nil, errIndexDamaged
	}
	n, size := binary.Uvarint(slot[8:])
	if size <= 0 || n > uint64(len(slot)-8-size) { //nolint:gosec // what is left is not negative
		return 0, nil, nil, errIndexDamaged
	}
	from := 8 + size
	end := from + int(n) //nolint:gosec // within the slot
	return mark(binary.BigEndian.Uint64(slot)), slot[from:end], slot[end:], nil
}

// appendIDs unpacks ids.
func appendIDs(ids []int64, packed []byte) ([]int64, error) {
	if len(packed) > cap(ids)-len(ids) { // most are a byte long
		ids = slices.Grow(ids, max(len(packed), len(ids)))
	}
	var id int64
	for len(packed) > 0 {
		n, size := binary.Uvarint(packed)
		if size <= 0 || n > uint64(math.MaxInt64-id) {
			return nil, errIndexDamaged
		}
		id, packed = id+int64(n), packed[size:] //nolint:gosec // see above
		ids = append(ids, id)
	}
	return ids, nil
}

// ascending sorts ids, unless they are sorted, and takes out repeated ones.
func ascending(ids []int64) []int64 {
	if !slices.IsSorted(ids) {
		slices.Sort(ids)
	}
	return slices.Compact(ids)
}

// mergeSlots calls do for the marks of several slots in ascending order, each once, with those of its ids that are kept.
// The ids are valid until the next call.
func mergeSlots(slots [][]byte, kept func(id int64) bool, do func(k mark, ids []int64) error) error {
	all, err := entriesOf(slots)
	if err != nil {
		return err
	}
	var ids []int64
	for i := range all {
		if ids, err = appendIDs(ids, all[i].ids); err != nil {
			return err
		}
		if i+1 < len(all) && all[i+1].mark == all[i].mark {
			continue
		}
		ids = slices.DeleteFunc(ascending(ids), func(id int64) bool { return !kept(id) })
		if err := do(all[i].mark, ids); err != nil {
			return err
		}
		ids = ids[:0]
	}
	return nil
}

type entry struct {
	mark mark
	ids  []byte
}

// entriesOf returns the entries of all slots, in the order of their marks.
func entriesOf(slots [][]byte) ([]entry, error) {
	var all []entry
	for _, slot := range slots {
		for len(slot) > 0 {
			var e entry
			var err error
			if e.mark, e.ids, slot, err = nextEntry(slot); err != nil {
				return nil, err
			}
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(a.mark, b.mark) })
	return all, nil
}

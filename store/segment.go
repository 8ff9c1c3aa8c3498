package store

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"iter"
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

// entries yields the marks of a slot with their ids as they are packed, up to the first that is damaged.
func entries(slot []byte) iter.Seq2[mark, []byte] {
	return func(yield func(mark, []byte) bool) {
		for len(slot) > 8 {
			k := mark(binary.BigEndian.Uint64(slot))
			n, size := binary.Uvarint(slot[8:])
			if size <= 0 || n > uint64(len(slot)-8-size) { //nolint:gosec // what is left is not negative
				return
			}
			end := 8 + size + int(n) //nolint:gosec // within the slot
			if !yield(k, slot[8+size:end]) {
				return
			}
			slot = slot[end:]
		}
	}
}

// appendIDs unpacks ids.
func appendIDs(ids []int64, packed []byte) []int64 {
	var id int64
	for len(packed) > 0 {
		n, size := binary.Uvarint(packed)
		if size <= 0 {
			break
		}
		id, packed = id+int64(n), packed[size:] //nolint:gosec // see appendEntry
		ids = append(ids, id)
	}
	return ids
}

// ascending sorts ids, unless they are sorted, and takes out repeated ones.
func ascending(ids []int64) []int64 {
	if !slices.IsSorted(ids) {
		slices.Sort(ids)
	}
	return slices.Compact(ids)
}

// mergeSlots yields the marks of several slots in ascending order, each once, with those of its ids that are kept.
func mergeSlots(slots [][]byte, kept func(id int64) bool) iter.Seq2[mark, []int64] {
	type entry struct {
		mark mark
		ids  []byte
	}
	var all []entry
	for _, slot := range slots {
		for k, packed := range entries(slot) {
			all = append(all, entry{k, packed})
		}
	}
	slices.SortStableFunc(all, func(a, b entry) int { return cmp.Compare(a.mark, b.mark) })
	return func(yield func(mark, []int64) bool) {
		var ids []int64
		for i := range all {
			ids = appendIDs(ids, all[i].ids)
			if i+1 < len(all) && all[i+1].mark == all[i].mark {
				continue
			}
			ids = slices.DeleteFunc(ascending(ids), func(id int64) bool { return !kept(id) })
			if !yield(all[i].mark, ids) {
				return
			}
			ids = ids[:0]
		}
	}
}

package translog

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/transparency-dev/formats/proof"
	"golang.org/x/mod/sumdb/tlog"
)

// Leaf is the hash of the leaf of a record with that hash.
func Leaf(recordHash string) tlog.Hash { return tlog.RecordHash([]byte(recordHash)) }

// Prove returns a file that proves, to those who have the log's public key, that the record of a leaf was in the log
// when the checkpoint was made.
func Prove(c Checkpoint, leaf int64, hashes tlog.HashReader) ([]byte, error) {
	path, err := tlog.ProveRecord(c.Leaves, leaf, hashes)
	if err != nil {
		return nil, err
	}
	p := proof.TLogProof{Index: uint64(leaf), Checkpoint: []byte(c.Note)} //nolint:gosec // a count
	for _, h := range path {
		p.Hashes = append(p.Hashes, [sha256.Size]byte(h))
	}
	return p.Marshal(), nil
}

// CheckProof checks what Prove returned for the record with that hash. It returns the checkpoint, as l.Open does, and the leaf.
func CheckProof(file []byte, recordHash string, open func(signed string) (Checkpoint, error)) (c Checkpoint, leaf int64, err error) {
	var p proof.TLogProof
	if err := p.Unmarshal(file); err != nil {
		return c, 0, fmt.Errorf("not a proof: %w", err)
	}
	if c, err = open(string(p.Checkpoint)); err != nil {
		return c, 0, err
	}
	path := make(tlog.RecordProof, len(p.Hashes))
	for i, h := range p.Hashes {
		path[i] = h
	}
	leaf = int64(p.Index) //nolint:gosec // CheckRecord refuses what is not below the number of leaves
	if err := tlog.CheckRecord(path, c.Leaves, c.Root, leaf, Leaf(recordHash)); err != nil {
		return c, 0, errors.New("it does not prove that the record is in the log: another record, or an altered one")
	}
	return c, leaf, nil
}

// Growth is a log at two times, and the proof that the later one continues the earlier one.
type Growth struct {
	From  int64 // the leaves of the earlier one
	Proof tlog.TreeProof
	To    Checkpoint
}

// Grow proves that a log has only grown since it had so many leaves.
func Grow(from int64, to Checkpoint, hashes tlog.HashReader) (Growth, error) {
	g := Growth{From: from, To: to}
	var err error
	if from > 0 && from < to.Leaves {
		g.Proof, err = tlog.ProveTree(to.Leaves, from, hashes)
	}
	return g, err
}

// Marshal writes the request that a witness takes (C2SP tlog-witness, add-checkpoint).
func (g Growth) Marshal() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "old %d\n", g.From)
	for _, h := range g.Proof {
		b.WriteString(base64.StdEncoding.EncodeToString(h[:]) + "\n")
	}
	b.WriteString("\n" + g.To.Note)
	return b.Bytes()
}

// ParseGrowth reads what Marshal wrote, and opens its checkpoint.
func ParseGrowth(data []byte, open func(signed string) (Checkpoint, error)) (Growth, error) {
	head, signed, found := strings.Cut(string(data), "\n\n")
	lines := strings.Split(head, "\n")
	size, isOld := strings.CutPrefix(lines[0], "old ")
	from, err := strconv.ParseInt(size, 10, 64)
	if !found || !isOld || err != nil || from < 0 {
		return Growth{}, errors.New("not a request to a witness: it begins with the line \"old N\", and ends with a checkpoint")
	}
	g := Growth{From: from}
	for _, line := range lines[1:] {
		h, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(h) != tlog.HashSize {
			return Growth{}, fmt.Errorf("not a request to a witness: %.80q is not a hash", line)
		}
		g.Proof = append(g.Proof, tlog.Hash(h))
	}
	g.To, err = open(signed)
	return g, err
}

// Check checks that the log continues an earlier one with that hash.
func (g Growth) Check(root tlog.Hash) error {
	switch {
	case g.From == 0 && len(g.Proof) == 0:
		return nil
	case g.From == g.To.Leaves && len(g.Proof) == 0 && root == g.To.Root:
		return nil
	case g.From > 0 && g.From < g.To.Leaves && tlog.CheckTree(g.Proof, g.To.Leaves, g.To.Root, g.From, root) == nil:
		return nil
	}
	return fmt.Errorf("the log of %d records does not continue the one of %d: records were changed, removed or put in between", g.To.Leaves, g.From)
}

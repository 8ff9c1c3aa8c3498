package translog

import (
	"errors"
	"fmt"
	"strings"

	cosign "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// Witness signs checkpoints of a log that only grows.
type Witness struct{ signer *cosign.Signer }

// NewWitness takes the private key of a witness, as [NewKey] makes it.
func NewWitness(private string) (*Witness, error) {
	signer, err := cosign.NewSignerForCosignatureV1(strings.TrimSpace(private))
	if err != nil {
		return nil, fmt.Errorf("not a private key of a witness (PRIVATE+KEY+NAME+…): %w", err)
	}
	return &Witness{signer}, nil
}

// OpenWitness takes the public key of a witness.
func OpenWitness(public string) (note.Verifier, error) {
	key, err := cosign.VKeyToCosignatureV1(strings.TrimSpace(public))
	if err != nil {
		key = strings.TrimSpace(public)
	}
	v, err := cosign.NewVerifierForCosignatureV1(key)
	if err != nil {
		return nil, fmt.Errorf("not a public key of a witness (NAME+HASH+KEY): %w", err)
	}
	return v, nil
}

// Cosign checks a request against the checkpoint that the witness signed last, empty if there is none, and returns the
// new checkpoint with the witness's signature. The caller keeps it as the last one, before anybody sees it.
func (w *Witness) Cosign(l *Log, last string, request []byte) (Checkpoint, error) {
	g, err := ParseGrowth(request, func(s string) (Checkpoint, error) { return l.Open(s) })
	if err != nil {
		return Checkpoint{}, err
	}
	var known Checkpoint
	if last != "" {
		if known, err = l.Open(last); err != nil {
			return Checkpoint{}, fmt.Errorf("the checkpoint that was signed last: %w", err)
		}
	}
	switch {
	case g.From != known.Leaves:
		return Checkpoint{}, fmt.Errorf("the request begins at %d records, and the checkpoint that was signed last has %d", g.From, known.Leaves)
	case g.To.Leaves < known.Leaves:
		return Checkpoint{}, errors.New("the log has become shorter")
	}
	if err := g.Check(known.Root); err != nil {
		return Checkpoint{}, err
	}
	n, err := note.Open([]byte(g.To.Note), note.VerifierList(l.verifier))
	if err != nil {
		return Checkpoint{}, err
	}
	signed, err := note.Sign(n, w.signer)
	g.To.Note = string(signed)
	return g.To, err
}

// Root is the hash over a tree of so many leaves.
func Root(leaves int64, hashes tlog.HashReader) (tlog.Hash, error) {
	return tlog.TreeHash(leaves, hashes)
}

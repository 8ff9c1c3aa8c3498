// Package translog is the part of a transparency log that needs no database: keys, signed checkpoints, proofs that a
// record is in the log, and witnesses. Hashes and proofs are those of RFC 6962, as golang.org/x/mod/sumdb/tlog computes
// them; the files have the formats of C2SP (tlog-checkpoint, tlog-proof, tlog-witness, tlog-cosignature).
//
// The data of a leaf is the hash of a record as it stands in it, such as "sha256:…".
//
// Stability: internal.
package translog

import (
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	formats "github.com/transparency-dev/formats/log"
	cosign "github.com/transparency-dev/formats/note"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// NewKey makes a key pair of Ed25519. The name says whose it is, such as "example.com/prompts": it is the origin of the
// log's checkpoints. It has no blanks and no plus sign.
func NewKey(name string) (private, public string, err error) {
	if name == "" || strings.ContainsAny(name, "+ \t\r\n") {
		return "", "", fmt.Errorf("the name %q of a key must not be empty, nor hold blanks or plus signs", name)
	}
	return note.GenerateKey(rand.Reader, name)
}

// Verifier checks the signatures of one key.
type Verifier = note.Verifier

// Log signs and checks the checkpoints of one log.
type Log struct {
	signer   note.Signer // nil if only the public key is known
	verifier note.Verifier
}

// NewLog takes the private key of a log.
func NewLog(private string) (*Log, error) {
	signer, verifier, err := cosign.NewEd25519SignerVerifier(strings.TrimSpace(private))
	if err != nil {
		return nil, fmt.Errorf("not a private key of a log (PRIVATE+KEY+NAME+…): %w", err)
	}
	return &Log{signer, verifier}, nil
}

// OpenLog takes the public key of a log.
func OpenLog(public string) (*Log, error) {
	verifier, err := note.NewVerifier(strings.TrimSpace(public))
	if err != nil {
		return nil, fmt.Errorf("not a public key of a log (NAME+HASH+KEY): %w", err)
	}
	return &Log{verifier: verifier}, nil
}

// Checkpoint is what a log was at some time.
type Checkpoint struct {
	// Origin is the name of the log's key.
	Origin string `json:"origin"`
	// Leaves is how many records it had, and Root the hash over all of them.
	Leaves int64     `json:"leaves"`
	Root   tlog.Hash `json:"-"`
	// Note is the signed text, with both.
	Note string `json:"note"`
}

// Sign makes the checkpoint of a tree.
func (l *Log) Sign(leaves int64, root tlog.Hash) (Checkpoint, error) {
	if l.signer == nil {
		return Checkpoint{}, errors.New("only the public key of the log is known")
	}
	c := Checkpoint{Origin: l.signer.Name(), Leaves: leaves, Root: root}
	body := formats.Checkpoint{Origin: c.Origin, Size: uint64(leaves), Hash: root[:]}.Marshal() //nolint:gosec // a count
	signed, err := note.Sign(&note.Note{Text: string(body)}, l.signer)
	c.Note = string(signed)
	return c, err
}

// Open checks the log's signature of a checkpoint, and that each of the witnesses has signed it too.
func (l *Log) Open(signed string, witnesses ...note.Verifier) (Checkpoint, error) {
	parsed, _, n, err := formats.ParseCheckpoint([]byte(signed), l.verifier.Name(), l.verifier, witnesses...)
	switch {
	case err != nil:
		return Checkpoint{}, fmt.Errorf("not a checkpoint that %s signed: %w", l.verifier.Name(), err)
	case len(parsed.Hash) != tlog.HashSize || parsed.Size > 1<<62:
		return Checkpoint{}, errors.New("not a checkpoint: its hash or its number of records is impossible")
	}
	for _, w := range witnesses {
		if !signedBy(n, w) {
			return Checkpoint{}, fmt.Errorf("the witness %s has not signed the checkpoint", w.Name())
		}
	}
	return Checkpoint{Origin: parsed.Origin, Leaves: int64(parsed.Size), Root: tlog.Hash(parsed.Hash), Note: signed}, nil
}

// Read reads a checkpoint without asking who signed it: for those who have the log itself.
func Read(signed string) (Checkpoint, error) {
	var parsed formats.Checkpoint
	if _, err := parsed.Unmarshal([]byte(signed)); err != nil || len(parsed.Hash) != tlog.HashSize || parsed.Size > 1<<62 {
		return Checkpoint{}, errors.New("not a checkpoint: it begins with the name of a log, the number of its records, and their hash")
	}
	return Checkpoint{Origin: parsed.Origin, Leaves: int64(parsed.Size), Root: tlog.Hash(parsed.Hash), Note: signed}, nil
}

func signedBy(n *note.Note, v note.Verifier) bool {
	for _, s := range n.Sigs {
		if s.Name == v.Name() && s.Hash == v.KeyHash() {
			return true
		}
	}
	return false
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/grapnelhq/grapnel/internal/api"
	"github.com/grapnelhq/grapnel/internal/text/words"
	"github.com/grapnelhq/grapnel/internal/translog"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

type logKey struct {
	Name   string `json:"name"       jsonschema:"whose key it is"`
	Public string `json:"public_key" jsonschema:"what others check signatures with"`
	File   string `json:"file"       jsonschema:"the file with the private key"`
}

type keyFlags struct {
	Out string `flag:"out" usage:"write the private key to the new {FILE}; the public one is printed"`
}

func (a *app) manifestKey(_ context.Context, f *keyFlags, args []string) error {
	if f.Out == "" {
		return usagef("key needs --out FILE, for the private key")
	}
	private, public, err := translog.NewKey(args[0])
	if err != nil {
		return usagef("%w", err)
	}
	switch err := createNew(f.Out, []byte(private+"\n")); {
	case errors.Is(err, fs.ErrExist):
		return usagef("--out %s: the file is there already; a key that was used must not be lost", f.Out)
	case err != nil:
		return usagef("--out %s: %w", f.Out, unwrapPath(err))
	}
	return a.print(logKey{args[0], public, f.Out}, func() { a.println(public) })
}

// keyIn reads the private key in a file.
func (a *app) keyIn(flag, path string) (string, error) {
	if path == "" {
		return "", usagef("--%s FILE is missing; see: grapnel manifest key", flag)
	}
	data, err := a.readSecret(flag, path)
	return strings.TrimSpace(string(data)), err
}

// signingLog is the log whose private key is in the file of --key-file.
func (a *app) signingLog(keyFile string) (*translog.Log, error) {
	key, err := a.keyIn("key-file", keyFile)
	if err != nil {
		return nil, err
	}
	l, err := translog.NewLog(key)
	if err != nil {
		return nil, usagef("--key-file %s: %w", keyFile, err)
	}
	return l, nil
}

// publicKey is a key itself, or that in a file.
func (a *app) publicKey(flag, value string) (string, error) {
	if value == "" || strings.Contains(value, "+") {
		return value, nil
	}
	data, err := a.readInput(flag, value)
	return strings.TrimSpace(string(data)), err
}

func (a *app) openLog(value string) (*translog.Log, error) {
	key, err := a.publicKey("log-key", value)
	if err == nil && key == "" {
		err = usagef("--log-key KEY is missing; see: grapnel manifest key")
	}
	if err != nil {
		return nil, err
	}
	l, err := translog.OpenLog(key)
	if err != nil {
		return nil, usagef("--log-key: %w", err)
	}
	return l, nil
}

type checkpointFlags struct {
	KeyFile string `flag:"key-file" usage:"{FILE} with the private key of the log"`
	Since   string `flag:"since"    usage:"print a request to a witness: with the proof that the log continues the checkpoint in the {FILE}, or \"none\""`
}

// leavesOf is how many records a checkpoint in a file has: -1 without a file, 0 for "none".
func (a *app) leavesOf(path string) (int64, error) {
	switch path {
	case "":
		return -1, nil
	case "none":
		return 0, nil
	}
	data, err := a.readInput("since", path)
	if err != nil {
		return 0, err
	}
	c, err := translog.Read(string(data))
	if err != nil {
		return 0, usagef("--since %s: %w", path, err)
	}
	return c.Leaves, nil
}

type checkpointResult struct {
	translog.Checkpoint

	Request string `json:"request,omitempty" jsonschema:"what a witness takes, with --since"`
}

func (a *app) manifestCheckpoint(ctx context.Context, f *checkpointFlags, _ []string) error {
	l, err := a.signingLog(f.KeyFile)
	if err != nil {
		return err
	}
	from, err := a.leavesOf(f.Since)
	if err != nil {
		return err
	}
	return a.withStore(ctx, store.Options{}, func(s *openedStore) error {
		done, err := s.Checkpoint(ctx, l)
		if err != nil {
			return err
		}
		result := checkpointResult{Checkpoint: done}
		if from >= 0 {
			g, err := s.Grow(ctx, from)
			if err != nil {
				return err
			}
			result.Request = string(g.Marshal())
		}
		return a.print(result, func() { a.out.WriteString(words.If(from < 0, done.Note) + result.Request) })
	})
}

type manifestProof struct {
	ManifestID string `json:"manifest_id" jsonschema:"the manifest that is proven to be in the log"`
	Proof      string `json:"proof"       jsonschema:"the file (C2SP tlog-proof)"`
}

type proveFlags struct {
	filterFlags

	Checkpoint string `flag:"checkpoint" usage:"{FILE} with the checkpoint to prove it for (default the newest that was signed)"`
}

func (a *app) manifestProve(ctx context.Context, s *openedStore, f *proveFlags, args []string) error {
	signed, err := a.readInput("checkpoint", f.Checkpoint)
	if err != nil {
		return err
	}
	m, err := api.Find(ctx, s, args[0], f.filter())
	if err != nil {
		return notThere(err)
	}
	proof, err := s.Prove(ctx, m.ManifestID, string(signed))
	if err != nil {
		return notThere(err)
	}
	return a.print(manifestProof{m.ManifestID, string(proof)}, func() { a.out.Write(proof) })
}

// proofFlags are those of verify about checkpoints and proofs.
type proofFlags struct {
	Checkpoint string   `flag:"checkpoint" usage:"{FILE} with a checkpoint that the log must continue; needs --log-key"`
	OnlyNewer  bool     `flag:"only-newer" usage:"with --checkpoint: read only the records behind it; of those before, compare the hashes"`
	Proof      string   `flag:"proof"      usage:"without a log: {FILE} with a proof that \"manifest prove\" printed; needs --record and --log-key"`
	Record     string   `flag:"record"     usage:"{FILE} with the record that the proof is about: one line of an export, or -"`
	LogKey     string   `flag:"log-key"    usage:"the public {KEY} of the log, or a file with it"`
	Witness    []string `flag:"witness"    usage:"the public {KEY} of a witness who must have signed the checkpoint too; may be repeated"`
}

// open returns what checks checkpoints.
func (a *app) openCheckpoints(p *proofFlags) (func(signed string) (translog.Checkpoint, error), error) {
	if p.LogKey == "" {
		return nil, usagef("--checkpoint and --proof need --log-key KEY")
	}
	l, err := a.openLog(p.LogKey)
	if err != nil {
		return nil, err
	}
	witnesses := make([]translog.Verifier, 0, len(p.Witness))
	for _, w := range p.Witness {
		key, err := a.publicKey("witness", w)
		if err != nil {
			return nil, err
		}
		v, err := translog.OpenWitness(key)
		if err != nil {
			return nil, usagef("--witness: %w", err)
		}
		witnesses = append(witnesses, v)
	}
	return func(signed string) (translog.Checkpoint, error) { return l.Open(signed, witnesses...) }, nil
}

// since is what the flags say the log was.
func (a *app) since(p *proofFlags) (store.Since, error) {
	if p.Checkpoint == "" {
		if p.OnlyNewer || p.LogKey != "" || len(p.Witness) > 0 {
			return store.Since{}, usagef("--only-newer, --log-key and --witness go with --checkpoint FILE or --proof FILE")
		}
		return store.Since{}, nil
	}
	open, err := a.openCheckpoints(p)
	if err != nil {
		return store.Since{}, err
	}
	data, err := a.readInput("checkpoint", p.Checkpoint)
	if err != nil {
		return store.Since{}, err
	}
	c, err := open(string(data))
	if err != nil {
		return store.Since{}, refused(fmt.Errorf("--checkpoint %s: %w", p.Checkpoint, err))
	}
	return store.Since{Checkpoint: &c, OnlyNewer: p.OnlyNewer}, nil
}

type provenRecord struct {
	ManifestID string              `json:"manifest_id" jsonschema:"the record"`
	Leaf       int64               `json:"leaf"        jsonschema:"its number in the log, from 0"`
	Checkpoint translog.Checkpoint `json:"checkpoint"  jsonschema:"the checkpoint that it is proven for"`
}

// verifyProof checks a proof without the log.
func (a *app) verifyProof(p *proofFlags, key []byte) error {
	if p.Record == "" {
		return usagef("--proof needs --record FILE: the record that it is about, as one line of an export")
	}
	open, err := a.openCheckpoints(p)
	if err != nil {
		return err
	}
	proof, err := a.readInput("proof", p.Proof)
	if err != nil {
		return err
	}
	line, err := a.readInput("record", p.Record)
	if err != nil {
		return err
	}
	line = bytes.TrimRight(line, "\r\n")
	m, err := manifest.Parse(line)
	if err != nil && json.Valid(line) {
		return refused(fmt.Errorf("--record %s is not one line of an export: %w", p.Record, oneLine{err}))
	}
	if err != nil {
		return usagef("--record %s: %w", p.Record, oneLine{err})
	}
	if exported, err := manifest.Canonical(&m); err != nil || !bytes.Equal(exported, line) || m.Cache.Actual != nil {
		return refused(errors.New("the record is not one line of an export: it was written in another way, and other programs may read something else in it"))
	}
	keyed := strings.HasPrefix(m.Hash, "hmac-")
	if sum, err := manifest.RecordHash(&m, key); (!keyed || len(key) > 0) && (err != nil || sum != m.Hash) {
		return refused(errors.New("the record was altered: its hash does not match its content"))
	}
	c, leaf, err := translog.CheckProof(proof, m.Hash, open)
	if err != nil {
		return refused(err)
	}
	return a.print(provenRecord{m.ManifestID, leaf, c}, func() {
		a.printf("proven: the record %s is number %s of the log %s, which had %s records\n", m.ManifestID, strconv.FormatInt(leaf, 10), clean(c.Origin), strconv.FormatInt(c.Leaves, 10))
		if keyed && len(key) == 0 {
			a.println("its hash is keyed: only --key-file FILE shows that its content is what was hashed")
		}
	})
}

type witnessFlags struct {
	KeyFile string `flag:"key-file" usage:"{FILE} with the private key of the witness"`
	LogKey  string `flag:"log-key"  usage:"the public {KEY} of the log, or a file with it"`
	Last    string `flag:"last"     usage:"{FILE} with the checkpoint that was signed last; it is replaced, and made if it is not there. A witness has one for each log"`
}

func (a *app) manifestWitness(ctx context.Context, f *witnessFlags, args []string) error {
	key, err := a.keyIn("key-file", f.KeyFile)
	if err != nil {
		return err
	}
	w, err := translog.NewWitness(key)
	if err != nil {
		return usagef("--key-file %s: %w", f.KeyFile, err)
	}
	l, err := a.openLog(f.LogKey)
	if err != nil {
		return err
	}
	request, err := a.readInput("REQUEST", args[0])
	if err != nil {
		return err
	}
	return a.cosign(ctx, w, l, request, f.Last)
}

// cosign signs a checkpoint, keeps it as the last one and then prints it. It locks the file of the last one: two commands
// that read the same file could sign both sides of a fork.
func (a *app) cosign(ctx context.Context, w *translog.Witness, l *translog.Log, request []byte, last string) error {
	if last == "" {
		return usagef("witness needs --last FILE: what it has signed before decides what it may sign")
	}
	path, err := realFile(last)
	if err != nil {
		return usagef("--last %s: %w", last, err)
	}
	unlock, err := lockBeside(ctx, path, lockTime, "another command signs with it")
	if err != nil {
		return unable(fmt.Errorf("--last %s: %w", last, err))
	}
	defer unlock()
	before, err := lastSigned(path, l)
	if err != nil {
		return usagef("--last %s: %w", last, err)
	}
	c, err := w.Cosign(l, before, request)
	if err != nil {
		return refused(err)
	}
	if err := errors.Join(replaceFile(path, []byte(c.Note), 0o600), syncDir(filepath.Dir(path))); err != nil {
		return unable(err)
	}
	return a.print(c, func() { a.out.WriteString(c.Note) })
}

// lastSigned reads the checkpoint that was signed last; it is empty if there is no file.
func lastSigned(path string, l *translog.Log) (string, error) {
	const remedy = "put the last checkpoint that this witness has signed there, or remove the file if it has never signed one of this log"
	data, err := readRegular(path)
	if err != nil || data == nil {
		return "", unwrapPath(err)
	}
	if strings.TrimSpace(string(data)) == "" {
		return "", errors.New("the file is empty, so what was signed before is not known; " + remedy)
	}
	if _, err := l.Open(string(data)); err != nil {
		return "", fmt.Errorf("it does not hold the checkpoint that was signed last: %w; %s", err, remedy)
	}
	return string(data), nil
}

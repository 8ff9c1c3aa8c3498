package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/internal/api"
	"github.com/grapnelhq/grapnel/internal/words"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
	"github.com/grapnelhq/grapnel/translog"
)

type logKey struct {
	Name   string `json:"name"       jsonschema:"whose key it is"`
	Public string `json:"public_key" jsonschema:"what others check signatures with"`
	File   string `json:"file"       jsonschema:"the file with the private key"`
}

func (a *app) manifestKeyCommand() *cobra.Command {
	var out string
	c := newCommand("key NAME --out FILE", "Make a key that signs checkpoints of a log, or those that a witness has seen",
		exactlyOne("key needs one NAME, such as example.com/prompts"),
		func(_ *cobra.Command, args []string) error {
			if out == "" {
				return usagef("key needs --out FILE, for the private key")
			}
			private, public, err := translog.NewKey(args[0])
			if err != nil {
				return usagef("%w", err)
			}
			if err := writeNew(out, private+"\n"); err != nil {
				return err
			}
			return a.print(logKey{args[0], public, out}, func() { a.println(public) })
		})
	c.Flags().StringVar(&out, "out", "", "write the private key to the new `FILE`; the public one is printed")
	return c
}

// writeNew writes a file that only this user reads, and that was not there.
func writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return usagef("--out %s: the file is there already; a key that was used must not be lost", path)
	}
	if err != nil {
		return usagef("--out %s: %w", path, unwrapPath(err))
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return unable(fmt.Errorf("%s: %w", path, unwrapPath(err)))
	}
	return nil
}

// keyIn reads the private key in a file.
func (a *app) keyIn(flag, path string) (string, error) {
	if path == "" {
		return "", usagef("--%s FILE is missing; see: grapnel manifest key", flag)
	}
	data, err := a.readSecret(flag, path)
	return strings.TrimSpace(string(data)), err
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

func (a *app) manifestCheckpointCommand() *cobra.Command {
	var keyFile, since string
	c := newCommand("checkpoint --key-file FILE", "Sign what the log is now: how many records it has, and the hash over all of them", noArgs(),
		func(c *cobra.Command, _ []string) error {
			key, err := a.keyIn("key-file", keyFile)
			if err != nil {
				return err
			}
			l, err := translog.NewLog(key)
			if err != nil {
				return usagef("--key-file %s: %w", keyFile, err)
			}
			from, err := a.leavesOf(since)
			if err != nil {
				return err
			}
			return a.withStore(c.Context(), store.Options{}, func(s *openedStore) error {
				return a.manifestCheckpoint(c.Context(), s, l, from)
			})
		})
	c.Flags().StringVar(&keyFile, "key-file", "", "`FILE` with the private key of the log")
	c.Flags().StringVar(&since, "since", "", "print a request to a witness: with the proof that the log continues the checkpoint in the `FILE`, or \"none\"")
	return c
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

func (a *app) manifestCheckpoint(ctx context.Context, s *openedStore, l *translog.Log, from int64) error {
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
}

type manifestProof struct {
	ManifestID string `json:"manifest_id" jsonschema:"the manifest that is proven to be in the log"`
	Proof      string `json:"proof"       jsonschema:"the file (C2SP tlog-proof)"`
}

func (a *app) manifestProveCommand() *cobra.Command {
	var f filterFlags
	var path string
	c := newCommand("prove ID|latest", "Print a proof that a record is in the log, for those who have neither the log nor its key",
		exactlyOne("prove needs one ID, or the word latest"),
		func(c *cobra.Command, args []string) error {
			signed, err := a.readInput("checkpoint", path)
			if err != nil {
				return err
			}
			return a.withStore(c.Context(), store.Options{ReadOnly: true}, func(s *openedStore) error {
				m, err := api.Find(c.Context(), s, args[0], f.filter())
				if err != nil {
					return notThere(err)
				}
				proof, err := s.Prove(c.Context(), m.ManifestID, string(signed))
				if err != nil {
					return notThere(err)
				}
				return a.print(manifestProof{m.ManifestID, string(proof)}, func() { a.out.Write(proof) })
			})
		})
	c.ValidArgsFunction = a.completeManifests(1)
	f.register(c)
	c.Flags().StringVar(&path, "checkpoint", "", "`FILE` with the checkpoint to prove it for (default the newest that was signed)")
	return c
}

// proofFlags are those of verify about checkpoints and proofs.
type proofFlags struct {
	checkpoint, proof, record, logKey string
	witnesses                         []string
	onlyNewer                         bool
}

func (p *proofFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&p.checkpoint, "checkpoint", "", "`FILE` with a checkpoint that the log must continue; needs --log-key")
	flags.BoolVar(&p.onlyNewer, "only-newer", false, "with --checkpoint: read only the records behind it; of those before, compare the hashes")
	flags.StringVar(&p.proof, "proof", "", "without a log: `FILE` with a proof that \"manifest prove\" printed; needs --record and --log-key")
	flags.StringVar(&p.record, "record", "", "`FILE` with the record that the proof is about: one line of an export, or -")
	flags.StringVar(&p.logKey, "log-key", "", "the public `KEY` of the log, or a file with it")
	flags.StringArrayVar(&p.witnesses, "witness", nil, "the public `KEY` of a witness who must have signed the checkpoint too; may be repeated")
}

// open returns what checks checkpoints.
func (a *app) openCheckpoints(p *proofFlags) (func(signed string) (translog.Checkpoint, error), error) {
	if p.logKey == "" {
		return nil, usagef("--checkpoint and --proof need --log-key KEY")
	}
	l, err := a.openLog(p.logKey)
	if err != nil {
		return nil, err
	}
	witnesses := make([]translog.Verifier, 0, len(p.witnesses))
	for _, w := range p.witnesses {
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
	if p.checkpoint == "" {
		if p.onlyNewer || p.logKey != "" || len(p.witnesses) > 0 {
			return store.Since{}, usagef("--only-newer, --log-key and --witness go with --checkpoint FILE or --proof FILE")
		}
		return store.Since{}, nil
	}
	open, err := a.openCheckpoints(p)
	if err != nil {
		return store.Since{}, err
	}
	data, err := a.readInput("checkpoint", p.checkpoint)
	if err != nil {
		return store.Since{}, err
	}
	c, err := open(string(data))
	if err != nil {
		return store.Since{}, refused(fmt.Errorf("--checkpoint %s: %w", p.checkpoint, err))
	}
	return store.Since{Checkpoint: &c, OnlyNewer: p.onlyNewer}, nil
}

type provenRecord struct {
	ManifestID string              `json:"manifest_id" jsonschema:"the record"`
	Leaf       int64               `json:"leaf"        jsonschema:"its number in the log, from 0"`
	Checkpoint translog.Checkpoint `json:"checkpoint"  jsonschema:"the checkpoint that it is proven for"`
}

// verifyProof checks a proof without the log.
func (a *app) verifyProof(p *proofFlags, key []byte) error {
	if p.record == "" {
		return usagef("--proof needs --record FILE: the record that it is about, as one line of an export")
	}
	open, err := a.openCheckpoints(p)
	if err != nil {
		return err
	}
	proof, err := a.readInput("proof", p.proof)
	if err != nil {
		return err
	}
	line, err := a.readInput("record", p.record)
	if err != nil {
		return err
	}
	line = bytes.TrimRight(line, "\r\n")
	m, err := manifest.Parse(line)
	if err != nil && json.Valid(line) {
		return refused(fmt.Errorf("--record %s is not one line of an export: %w", p.record, oneLine{err}))
	}
	if err != nil {
		return usagef("--record %s: %w", p.record, oneLine{err})
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

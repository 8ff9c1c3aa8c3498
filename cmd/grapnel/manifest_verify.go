package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/internal/surface"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

// verifyFlags are the flags of manifest verify.
type verifyFlags struct {
	filterFlags
	// text and keyFile are files; head is the hash of a record.
	text, head, keyFile string
	// unkeyed takes threads that ended before there was a key.
	unkeyed bool
}

// manifestVerifyCommand says whether the log is what was written.
func (a *app) manifestVerifyCommand() *cobra.Command {
	var f verifyFlags
	c := &cobra.Command{
		Use:   "verify",
		Short: "Check that the log is whole: schema, order, hashes, fingerprints",
		Long: "Verify checks every manifest: its schema, its hash, its place behind the one before it,\n" +
			"the sign-off of its thread, its content hash, and the texts that were kept. It names the\n" +
			"first bad record and why it is bad: altered, missing, reordered, inserted, fingerprint\n" +
			"or schema.\n\n" +
			"Plain hashes prove order and content, and not that nothing is gone at the end: keep the\n" +
			"hash of the head somewhere else, and give it with --head. With a key (--key-file, or\n" +
			"manifest.chain_key in the configuration) nobody without it can make any of it anew; an\n" +
			"older copy of the whole log is told by --head alone. --text checks that some manifest\n" +
			"has the fingerprint of a text: a system prompt, a part of it, or one section.\n\n" +
			"Exit code 1 says that the log is broken, 3 that it could not be told.",
		Example: "  grapnel manifest verify --thread t1 --head sha256:9f86…\n" +
			"  grapnel manifest verify --key-file chain.key",
		Args: noArgs(),
		RunE: func(c *cobra.Command, _ []string) error {
			key, opts, err := a.verifyOptions(&f)
			if err != nil {
				return err
			}
			return a.withStore(c.Context(), store.Options{ReadOnly: true, Key: key}, func(s *openedStore) error {
				return a.manifestVerify(c.Context(), s, &f, opts)
			})
		},
	}
	f.register(c)
	flags := c.Flags()
	flags.StringVar(&f.text, "text", "", "a text that some manifest must have the fingerprint of: a `FILE`, or -")
	flags.StringVar(&f.head, "head", "", "the `HASH` of a manifest that must be there, as kept from an earlier verify")
	flags.BoolVar(&f.unkeyed, "allow-unkeyed", false, "with a key: take threads whose last manifest is from before there was one")
	flags.StringVar(&f.keyFile, "key-file", "", "`FILE` with the key of the hashes (default manifest.chain_key of the configuration)")
	return c
}

// verifyOptions reads what the flags name.
func (a *app) verifyOptions(f *verifyFlags) (key []byte, o manifest.VerifyOptions, err error) {
	if f.head != "" && !surface.IsHead(f.head) {
		return nil, o, usagef("--head %q: give a whole hash, as verify prints it: sha256: and 64 digits", f.head)
	}
	o.Head, o.AllowUnkeyed = f.head, f.unkeyed
	if f.text == "-" && f.keyFile == "-" {
		return nil, o, usagef("--text and --key-file cannot both be read from standard input")
	}
	data, err := a.readInput("text", f.text)
	if err != nil {
		return nil, o, err
	}
	if f.text != "" {
		// A text that ends with a newline got it from what wrote the file: no prompt
		// and no section ends with one.
		o.Texts = []string{strings.TrimRight(string(data), "\r\n")}
	}
	if data, err = a.readInput("key-file", f.keyFile); err != nil {
		return nil, o, err
	}
	if f.keyFile == "" {
		return nil, o, nil
	}
	if key = []byte(strings.TrimRight(string(data), "\r\n")); len(key) == 0 {
		return nil, o, usagef("--key-file %s: the key is empty", f.keyFile)
	}
	return key, o, nil
}

// manifestVerify checks the log and prints what it found. A log that is broken
// for certain is broken, whatever else could not be told.
func (a *app) manifestVerify(ctx context.Context, s *openedStore, f *verifyFlags, o manifest.VerifyOptions) error {
	heads := newHeads()
	progress := a.newTally("verifying: %s manifests")
	o.Seen = func(x manifest.Index) {
		heads.see(&x)
		progress.add()
	}
	verdict, err := s.Verify(ctx, f.filter(), o)
	progress.stop()
	untold := errors.Is(err, manifest.ErrKeyNeeded)
	if err != nil && !untold {
		return storeError(err)
	}
	if len(verdict.Problems) == 0 && verdict.Checked == 0 && f.given() {
		return unable(fmt.Errorf("there are no manifests%s to verify; see: grapnel manifest list", f.about()))
	}
	verdict.OK = verdict.OK && !untold
	if a.json {
		if err := a.printJSON(verdict); err != nil {
			return err
		}
	} else {
		a.printVerdict(&verdict, heads, o.Head)
	}
	switch {
	case len(verdict.Problems) > 0:
		return answerNo()
	case untold:
		return unable(fmt.Errorf("%w: --key-file FILE, or manifest.chain_key in the configuration, and manifest.fingerprint_key where texts are checked", err))
	}
	return nil
}

// heads are the newest manifests of each thread, as they pass by.
type heads struct {
	order []string
	last  map[string]manifest.Index
}

func newHeads() *heads { return &heads{last: map[string]manifest.Index{}} }

// see notes a manifest. Those of one thread come in the order of their seq.
func (h *heads) see(x *manifest.Index) {
	key := x.WorkspaceID + "\x00" + x.ThreadID
	if _, known := h.last[key]; !known {
		h.order = append(h.order, key)
	}
	h.last[key] = *x
}

// list returns them in the order of the threads.
func (h *heads) list() []manifest.Index {
	list := make([]manifest.Index, len(h.order))
	for i, key := range h.order {
		list[i] = h.last[key]
	}
	return list
}

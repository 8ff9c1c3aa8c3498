package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/grapnelhq/grapnel/compiler"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

// manifestText is the JSON of manifest show --text.
type manifestText struct {
	ManifestID string           `json:"manifest_id" jsonschema:"the manifest whose prompt it is"`
	Prompt     *compiler.Prompt `json:"prompt"      jsonschema:"the prompt as it was compiled, without a cache plan"`
	Checked    bool             `json:"checked"     jsonschema:"its fingerprints are those of the manifest"`
}

// manifestShowCommand shows one manifest as compile does, with what the provider
// reported since, or the prompt that it is about.
func (a *app) manifestShowCommand() *cobra.Command {
	var f filterFlags
	var text bool
	c := &cobra.Command{
		Use:   "show ID|latest",
		Short: "Show a kept manifest, or its prompt",
		Long: "Show prints a manifest of the store as compile does, with what the provider reported\n" +
			"since: how many tokens came from its cache, beside the prediction. Ids may be shortened.\n" +
			"With --json it prints the manifest itself, cache.actual filled in.\n\n" +
			"--text prints the prompt, put together again from the texts that were kept with\n" +
			"manifest: {keep_text: true}, and checks its fingerprints. Exit code 1: there is no such\n" +
			"manifest, or its texts were not kept, or are not those of the manifest.",
		Example: "  grapnel manifest show latest --thread t1\n" +
			"  grapnel manifest show 01JD --text",
		Args:              exactlyOne("show needs one ID, or the word latest"),
		ValidArgsFunction: a.completeManifests(1),
		RunE: func(c *cobra.Command, args []string) error {
			if !isStored(args[0]) {
				return usagef("%q is no manifest's id, nor the beginning of one; see: grapnel manifest list", args[0])
			}
			return a.withStore(c.Context(), store.Options{ReadOnly: true}, func(s *openedStore) error {
				m, err := s.find(c.Context(), args[0], f.filter())
				switch {
				case err != nil:
					return notThere(err)
				case text:
					return a.manifestText(c.Context(), s, m)
				}
				return a.manifestShow(c.Context(), s, m)
			})
		},
	}
	f.register(c)
	c.Flags().BoolVar(&text, "text", false, "print the prompt, if its texts were kept")
	return c
}

// manifestShow prints a manifest and the newest report about it.
func (a *app) manifestShow(ctx context.Context, s *openedStore, m *manifest.Manifest) error {
	reports, err := s.Usage(ctx, m.ManifestID)
	if err != nil {
		return storeError(err)
	}
	var usage *manifest.Usage
	if n := len(reports); n > 0 {
		usage = &reports[n-1]
		m.Cache.Actual = &usage.CacheReadTokens
	}
	if a.json {
		return a.printJSON(m)
	}
	a.printStored(m, usage)
	return a.printLaterAudits(ctx, s, m)
}

// manifestText prints the prompt of a manifest. A text that was altered is shown
// all the same: who asks for it wants to see what it is now.
func (a *app) manifestText(ctx context.Context, s *openedStore, m *manifest.Manifest) error {
	p, err := compiler.Rebuild(m.Sections, func(fingerprint string) (string, error) { return s.Text(ctx, fingerprint) })
	switch {
	case store.HasCode(err, store.CodeNotFound):
		return refused(fmt.Errorf("the texts of the manifest %s were not kept, or not all: %w", m.ManifestID, err))
	case err != nil:
		return unable(err)
	case len(m.Sections) == 0:
		return refused(fmt.Errorf("the manifest %s has no prompt: its turn was blocked before there was one", m.ManifestID))
	}
	checked := s.checkPrompt(m, &p)
	if a.json {
		if err := a.printJSON(manifestText{m.ManifestID, &p, checked == nil}); err != nil {
			return err
		}
		return checked
	}
	a.out.WriteString(promptText(&p))
	return checked
}

// checkPrompt compares a prompt that was put together again with the
// fingerprints of its manifest. The error names the parts that differ.
func (s *openedStore) checkPrompt(m *manifest.Manifest, p *compiler.Prompt) error {
	var key []byte
	if strings.HasPrefix(m.FingerprintFull, "hmac-") {
		if key = s.fingerprintKey; len(key) == 0 {
			return unable(errors.New("the prompt above could not be checked: its fingerprints are keyed; give the key as manifest.fingerprint_key in the configuration"))
		}
	}
	var differ []string
	for _, part := range []struct{ name, text, want string }{
		{"stable", p.StableText, m.FingerprintStable},
		{"dynamic", p.DynamicText, m.FingerprintDynamic},
		{"full", p.FullText, m.FingerprintFull},
	} {
		if manifest.Fingerprint(part.text, key) != part.want {
			differ = append(differ, "fingerprint_"+part.name)
		}
	}
	for _, msg := range slices.Concat(p.SystemMessages, p.UserMessages) {
		if !hasSection(m, msg.SectionID, manifest.Fingerprint(msg.Text, key)) {
			differ = append(differ, "the message "+msg.SectionID)
		}
	}
	if len(differ) == 0 {
		return nil
	}
	return refused(fmt.Errorf("the prompt above is not the one that was compiled: %s of the manifest %s %s; see: grapnel manifest verify",
		strings.Join(differ, ", "), m.ManifestID, plural(len(differ), "differs", "differ")))
}

// hasSection reports whether a manifest has a section with that fingerprint.
func hasSection(m *manifest.Manifest, id, fingerprint string) bool {
	for i := range m.Sections {
		if m.Sections[i].SectionID == id {
			return m.Sections[i].Fingerprint == fingerprint
		}
	}
	return false
}

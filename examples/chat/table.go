package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/store"
)

// table prints what the manifests say of the provider's cache, a line a request.
func table(ctx context.Context, log *store.Store, out io.Writer) error {
	list, err := log.Manifests(ctx, store.Filter{Workspace: "demo", Thread: "chat"})
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if _, err := fmt.Fprintln(w, "\nturn\tround\tprompt\tpredicted\tfrom cache\tbroken by"); err != nil {
		return err
	}
	for _, m := range list {
		usage, err := log.Usage(ctx, m.ManifestID)
		if err != nil {
			return err
		}
		prompt, read := "-", "-"
		if n := len(usage); n > 0 {
			prompt, read = strconv.Itoa(usage[n-1].InputTokens), strconv.Itoa(usage[n-1].CacheReadTokens)
		}
		predicted := "-"
		if p := m.Cache.Predicted; p != nil {
			predicted = strconv.Itoa(*p)
		}
		if _, err := fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%s\n", m.TurnID, m.Round, prompt, predicted, read, broken(&m.Cache)); err != nil {
			return err
		}
	}
	return w.Flush()
}

// broken names what made the prompt another one than that before it: what stands
// in front of everything, or the first section that differs.
func broken(c *manifest.Cache) string {
	switch {
	case c.Miss == manifest.MissTools || c.Miss == manifest.MissModel || c.Miss == manifest.MissExpired:
		return string(c.Miss)
	case c.BrokeAt != "":
		return fmt.Sprintf("%s of %s, %d tokens behind", c.BrokeAt, c.Owner, c.TokensBehind)
	default:
		return "-"
	}
}

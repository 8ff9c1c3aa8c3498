package store_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/store"
)

// The store does not know the runtime. This is the runtime's Sink.
var _ interface {
	Append(ctx context.Context, m *manifest.Manifest, texts []manifest.Text) error
	Last(ctx context.Context, workspace, thread string) (*manifest.Manifest, error)
	Report(ctx context.Context, u manifest.Usage) error
} = (*store.Store)(nil)

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "grapnel-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()

	s, err := store.Open(ctx, "sqlite:"+filepath.Join(dir, "grapnel.db"), store.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = s.Close() }()
	for n := range 3 {
		if err := s.Append(ctx, sample("workspace", "thread", n), nil); err != nil {
			fmt.Println(err)
		}
	}
	list, err := s.List(ctx, store.Filter{Thread: "thread", Limit: 2})
	if err != nil {
		fmt.Println(err)
	}
	for _, x := range list {
		fmt.Println(x.Seq, x.TurnID)
	}
	verdict, err := s.Verify(ctx, store.Filter{}, manifest.VerifyOptions{Head: list[1].Hash})
	fmt.Println(verdict.OK, verdict.Anchored, verdict.Checked, err)
	pruned, err := s.Prune(ctx, store.Retention{Count: 1}, epoch())
	fmt.Println(pruned.Manifests, err)
	_, err = s.Get(ctx, sampleID(0))
	fmt.Println(store.HasCode(err, store.CodeNotFound))
	// Output:
	// 1 turn-1
	// 2 turn-2
	// true true 3 <nil>
	// 2 <nil>
	// true
}

// What a provider reports stands beside the manifest that it is about.
func ExampleStore_Report() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "grapnel-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()

	s, err := store.Open(ctx, "sqlite:"+filepath.Join(dir, "grapnel.db"), store.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = s.Close() }()
	if err := s.Append(ctx, sample("workspace", "thread", 0), sampleTexts()); err != nil {
		fmt.Println(err)
	}
	last, err := s.Last(ctx, "workspace", "thread")
	if err != nil {
		fmt.Println(err)
		return
	}
	report := manifest.Usage{ManifestID: last.ManifestID, Rounds: 1, ReportedAt: epoch(), Usage: phases.Usage{CacheReadTokens: 900}}
	fmt.Println(s.Report(ctx, report))
	reports, err := s.Usage(ctx, last.ManifestID)
	fmt.Println(reports[0].CacheReadTokens, err)
	text, err := s.Text(ctx, last.Sections[3].Hash)
	fmt.Println(text, err)
	// Output:
	// <nil>
	// 900 <nil>
	// text of section 3 <nil>
}

package manifest_test

import (
	"fmt"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

func ExampleVerifier() {
	// What a store does: it seals each record behind the last one, keeps it with
	// its index, and signs the chain off.
	chain := manifest.Chain{WorkspaceID: "w", ThreadID: "t"}
	var log []manifest.Record
	for _, id := range []string{"01JZ0000000000000000000000", "01JZ0000000000000000000001", "01JZ0000000000000000000002"} {
		m := record(id)
		m.WorkspaceID, m.ThreadID = "w", "t"
		r, err := manifest.SealRecord(nil, &m, chain.Link(), nil)
		if err != nil {
			fmt.Println(err)
		}
		log = append(log, r)
		chain.Next, chain.Last = m.Seq+1, m.Hash
		if err := chain.Sign(nil); err != nil {
			fmt.Println(err)
		}
	}
	verify := func(records []manifest.Record, head string) {
		v := manifest.NewVerifier(manifest.VerifyOptions{Head: head})
		v.Begin("w", "t", &chain, nil)
		for _, r := range records {
			v.Add(v.Inspect(r))
		}
		got, err := v.Verdict()
		fmt.Println("ok:", got.OK, "anchored:", got.Anchored, err)
		if got.FirstBad != nil {
			fmt.Println(got.FirstBad.Reason, got.FirstBad.Seq)
		}
	}
	verify(log, "")
	verify(log, chain.Last)
	verify([]manifest.Record{log[0], log[2]}, "")
	// Output:
	// ok: true anchored: false <nil>
	// ok: true anchored: true <nil>
	// ok: false anchored: false <nil>
	// missing 1
}

func ExampleDiff() {
	a, b := record("01JZ0000000000000000000000"), record("01JZ0000000000000000000001")
	fmt.Println(manifest.Diff(&a, &b, nil, nil).Same)
	b.Sections[0].Owner = phases.OwnerHost
	b.Budgets.Turn.GrantedMS = 500
	d := manifest.Diff(&a, &b, nil, nil)
	fmt.Println(d.Same, d.Sections.Reowned, d.Budgets[0].Name, d.Budgets[0].What, d.Budgets[0].To.GrantedMS)
	// Output:
	// true
	// false [identity] turn changed 500
}

func ExampleBlame() {
	a, b := record("01JZ0000000000000000000000"), record("01JZ0000000000000000000001")
	b.Sections[0].Hash = manifest.Hash("You are brief.", nil)
	entries := func(yield func(manifest.Entry, error) bool) {
		_ = yield(manifest.Entry{Outline: a.Outline()}, nil) && yield(manifest.Entry{Outline: b.Outline()}, nil)
	}
	for turn, err := range manifest.Blame(entries) {
		fmt.Printf("%s broke at %q of %q: %s %v\n", turn.ManifestID[24:], turn.BrokeAt, turn.Owner, turn.Words(), err)
	}
	// Output:
	// 00 broke at "" of "":  <nil>
	// 01 broke at "identity" of "builtin": another text <nil>
}

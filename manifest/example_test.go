package manifest_test

import (
	"fmt"
	"time"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// record is what compiler and runtime hand over, much shortened.
func record(id string) manifest.Manifest {
	const text = "You are helpful."
	m := manifest.New()
	m.ManifestID = id
	m.Cache.Plan.Key = manifest.Fingerprint(text, nil)
	m.CompilerVersion = "1"
	m.CreatedAt = time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	m.Sections = []manifest.Section{{
		SectionID: "identity", Title: "Identity", Stability: "stable", Placement: "system", Owner: phases.OwnerBuiltin,
		Chars: len(text), OriginalChars: len(text),
		Fingerprint: manifest.Fingerprint(text, nil), Hash: manifest.Hash(text, nil),
	}}
	m.Fingerprints = manifest.EmptyFingerprints(nil)
	m.FingerprintStable, m.HashStable = manifest.Fingerprint(text, nil), manifest.Hash(text, nil)
	m.FingerprintFull, m.HashFull = m.FingerprintStable, m.HashStable
	return m
}

func ExampleSeal() {
	first := record("01JZ0000000000000000000000")
	second := record("01JZ0000000000000000000001")
	if err := manifest.Seal(&first, nil, nil); err != nil {
		fmt.Println(err)
	}
	last := first.Link()
	if err := manifest.Seal(&second, &last, nil); err != nil {
		fmt.Println(err)
	}
	fmt.Println("seq", second.Seq, "chained:", second.Prev == first.Hash)
	fmt.Println("same content:", second.ContentHash == first.ContentHash, "same record:", second.Hash == first.Hash)
	fmt.Println("valid:", manifest.Validate(&second) == nil)
	// Output:
	// seq 1 chained: true
	// same content: true same record: false
	// valid: true
}

func ExampleHashLabels() {
	m := record("01JZ0000000000000000000000")
	m.Files = []manifest.File{{Path: "SOUL.md", Status: "loaded", Chars: 10}}
	hashed := manifest.HashLabels(m, nil)
	fmt.Println(m.Files[0].Path, "becomes", hashed.Files[0].Path)
	fmt.Println(hashed.Sections[0].SectionID, "has the title", hashed.Sections[0].Title)
	// Output:
	// SOUL.md becomes sha256:bde0ac766bf0a14e24556e1998952f8521c6b1c9f90ecb9a0295f905eddac9d4
	// identity has the title sha256:999f23fcd7bec7075e54bb5dea0d9c548bfe7261f95b911ed8e23d2f4188724f
}

func ExampleParse() {
	m := record("01JZ0000000000000000000000")
	m.Complete()
	b, err := manifest.Canonical(&m)
	if err != nil {
		fmt.Println(err)
	}
	again, err := manifest.Parse(b)
	fmt.Println(again.SectionIDs, err)
	// Output: [identity] <nil>
}

func ExampleCompare() {
	before, after := record("01JZ0000000000000000000000"), record("01JZ0000000000000000000001")
	after.Sections[0].Hash = manifest.Hash("You are brief.", nil)
	was, is := before.Outline(), after.Outline()
	b := manifest.Compare(&was, &is, nil, nil)
	fmt.Println(b.Cause, b.BrokeAt, b.Owner)
	// Output: section_text identity builtin
}

package compiler

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/manifest"
)

var errGone = errors.New("no such text")

// lookup finds texts as a store does.
func lookup(texts []manifest.Text) func(string) (string, error) {
	byHash := map[string]string{}
	for _, x := range texts {
		byHash[x.Hash] = x.Text
	}
	return func(hash string) (string, error) {
		text, ok := byHash[hash]
		if !ok {
			return "", errGone
		}
		return text, nil
	}
}

// checkRebuilt puts the prompt together again and wants the same bytes, and the
// fingerprints that the manifest has.
func checkRebuilt(t *testing.T, out *Output, key []byte) {
	t.Helper()
	for _, x := range out.Texts {
		if got := manifest.Hash(x.Text, key); got != x.Hash {
			t.Errorf("a text with the hash %s is kept under %s", got, x.Hash)
		}
	}
	p, err := Rebuild(new(out.Manifest()), lookup(out.Texts))
	if err != nil {
		t.Error(err)
	}
	want := out.Prompt
	want.CachePlan = manifest.CachePlan{}
	if diff := cmp.Diff(p, want); diff != "" {
		t.Errorf("rebuilt (-got +want):\n%s", diff)
	}
	is := func(s, fingerprint, hash string) bool {
		return manifest.Fingerprint(s, key) == fingerprint && manifest.Hash(s, key) == hash
	}
	f := &out.Fingerprints
	if !is(p.StableText, f.FingerprintStable, f.HashStable) || !is(p.DynamicText, f.FingerprintDynamic, f.HashDynamic) ||
		!is(p.FullText, f.FingerprintFull, f.HashFull) {
		t.Error("the fingerprints or hashes of the rebuilt prompt are others")
	}
}

func TestRebuildMistakes(t *testing.T) {
	t.Parallel()

	out := mustCompile(t, Input{KeepTexts: true, Facts: Facts{Date: "2026-02-03"}})
	n := len(out.Sections)
	turned := append(append([]manifest.Section{}, out.Sections[n-1]), out.Sections[:n-1]...)
	tests := []struct {
		name     string
		sections []manifest.Section
		texts    []manifest.Text
		want     error
	}{
		{"a text is gone", out.Sections, out.Texts[1:], errGone},
		{"another order", turned, out.Texts, errOrder},
		{"nothing", nil, nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			p, err := Rebuild(&manifest.Manifest{Sections: tt.sections}, lookup(tt.texts))
			if !errors.Is(err, tt.want) || p.FullText != "" {
				t.Errorf("Rebuild = %q, %v, want %v", p.FullText, err, tt.want)
			}
		})
	}
}

func ExampleRebuild() {
	out, err := Compile(Input{KeepTexts: true, Host: HostTexts{Identity: "You are a gardener.", Safety: "Water before noon."}})
	if err != nil {
		fmt.Println(err)
		return
	}
	kept := map[string]string{}
	for _, text := range out.Texts {
		kept[text.Hash] = text.Text
	}

	m := out.Manifest()
	prompt, err := Rebuild(&m, func(hash string) (string, error) { return kept[hash], nil })
	fmt.Println(prompt.FullText, err)
	fmt.Println(manifest.Hash(prompt.FullText, nil) == m.HashFull)
	// Output:
	// ## Identity
	//
	// You are a gardener.
	//
	// ## Safety
	//
	// Water before noon. <nil>
	// true
}

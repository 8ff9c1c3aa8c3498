package main

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/manifest"
)

// TestFresh wants every generated table to say what the code says now.
func TestFresh(t *testing.T) {
	t.Parallel()

	root := filepath.Join("..", "..")
	names, err := documents(root)
	if err != nil || len(names) == 0 {
		t.Fatalf("documents %v: %v", names, err)
	}
	for _, name := range names {
		have, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want, err := generate(root, string(have))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(string(have), want); diff != "" {
			t.Errorf("%s is stale, run go generate ./internal/docgen (-have +want):\n%s", name, diff)
		}
	}
}

// TestRecordHashCoversTheRecord: changing any field changes the hash of the record, but
// for the hash itself and what the provider reports later.
func TestRecordHashCoversTheRecord(t *testing.T) {
	t.Parallel()

	var m manifest.Manifest
	fields, err := fieldsOf(reflect.ValueOf(&m).Elem(), "")
	if err != nil || len(fields) < 100 {
		t.Fatalf("%d fields: %v", len(fields), err)
	}
	for _, f := range fields {
		if f.change == nil {
			continue
		}
		before, err := manifest.RecordHash(&m, nil)
		if err != nil {
			t.Fatal(err)
		}
		f.change()
		after, err := manifest.RecordHash(&m, nil)
		if err != nil {
			t.Fatal(err)
		}
		if covered, want := before != after, f.path != "hash" && f.path != "cache.actual"; covered != want {
			t.Errorf("the hash covers %s: %v, want %v", f.path, covered, want)
		}
	}
}

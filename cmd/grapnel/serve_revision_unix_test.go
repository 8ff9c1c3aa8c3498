//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/tree"
)

// TestServeRevisions goes from a save to the prompt and its manifest, and from the
// manifest back to the very text: each names the same document and version.
func TestServeRevisions(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	s := serveIn(t, dir)
	c := dial(t, s.target(), "")
	c.ask(t, "workspace/create", object{"id": "w", "name": "W"})
	turns := 0
	refOf := func() (string, *manifest.Manifest) {
		t.Helper()
		turns++
		answer := c.ask(t, "turn/compile", object{"turn": object{"workspace_id": "w", "thread_id": "t", "turn_id": strconv.Itoa(turns)}})
		var done struct {
			Manifest manifest.Manifest `json:"manifest"`
		}
		if err := json.Unmarshal(answer, &done); err != nil {
			t.Fatal(err)
		}
		for i := range done.Manifest.Sections {
			for _, ref := range done.Manifest.Sections[i].SourceRefs {
				if ref.Kind == "document" {
					return ref.ID, &done.Manifest
				}
			}
		}
		t.Fatal("no section is made of a document")
		return "", nil
	}
	saved := func(method string, params object) (ref string) {
		t.Helper()
		params["workspace_id"] = "w"
		var answer struct {
			Doc tree.Doc `json:"doc"`
		}
		if err := json.Unmarshal(c.ask(t, method, params), &answer); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(answer.Doc.ID, "@", answer.Doc.Version)
	}
	const save, restore = "thread/agents_doc/save", "thread/agents_doc/restore"
	for _, step := range []struct {
		method string
		params object
		text   string
	}{
		{save, object{"content": "Be brief."}, "Be brief."},
		{save, object{"content": "Be exact.", "expected_version": 1}, "Be exact."},
		{restore, object{"version": 1, "expected_version": 2}, "Be brief."},
	} {
		want := saved(step.method, step.params)
		ref, m := refOf()
		if ref != want {
			t.Errorf("the manifest names %s, and what was saved is %s", ref, want)
		}
		_, out, _ := grapnelIn(t, dir, "manifest", "show", m.ManifestID, "--store", "sqlite:"+dir+"/.local/share/grapnel/grapnel.db")
		if !strings.Contains(out, "\ninstructions (1)\n") || !strings.Contains(out, "  agents_md  document  root  "+ref+"  ") {
			t.Errorf("manifest show does not name %s:\n%s", ref, out)
		}
		id, version, _ := strings.Cut(ref, "@")
		var n int64
		if _, err := fmt.Sscan(version, &n); err != nil {
			t.Fatal(err)
		}
		var history struct {
			Revisions []tree.Revision `json:"revisions"`
		}
		if err := json.Unmarshal(c.ask(t, "thread/agents_doc/revisions", object{
			"workspace_id": "w", "doc_id": id, "before_version": n + 1, "limit": 1, "include_content": true,
		}), &history); err != nil {
			t.Fatal(err)
		}
		if len(history.Revisions) != 1 {
			t.Fatalf("revisions: %+v", history)
		}
		if r := history.Revisions[0]; r.DocID != id || r.Version != n || *r.Content != step.text || r.ContentSHA256 != tree.Sum(step.text) {
			t.Errorf("the revision %s is %+v", ref, r)
		}
	}
	s.end(t, syscall.SIGTERM)
}

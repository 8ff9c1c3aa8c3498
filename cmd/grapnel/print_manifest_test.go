package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/grapnelhq/grapnel/manifest"
)

// TestPrintRequests: each change has a row, and so has a request without any.
func TestPrintRequests(t *testing.T) {
	t.Parallel()

	a := &app{}
	a.printRequests(nil)
	a.printRequests([]manifest.Request{
		{ManifestID: "01A", Changes: []manifest.RequestChange{{Kind: manifest.RequestPlacement, ID: "rules", Manifest: "system_message", Sent: "system"}}, Omitted: 1200},
		{ManifestID: "01B"},
	})
	want := "\nrequests (3)\n" +
		"  prompt  change      what   in the record   sent\n" +
		"  01A     placement   rules  system_message  system\n" +
		"  01A     1,200 more  -      -               -\n" +
		"  01B     none        -      -               -\n"
	if diff := cmp.Diff(a.out.String(), want); diff != "" {
		t.Errorf("requests (-got +want):\n%s", diff)
	}
}

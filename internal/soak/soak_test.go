//go:build linux

package soak

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/badplugin"
)

// asPlugin makes the test binary a plugin.
const asPlugin = "soak-plugin"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asPlugin {
		os.Exit(Plugin(os.Args[:2], os.Args[2:], os.Exit))
	}
	goleak.VerifyTestMain(m)
}

// TestShortSoak is a soak of some seconds. It is not parallel: it counts what the
// whole process has.
func TestShortSoak(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var progress bytes.Buffer
	o := Options{Dispatches: 3000, Seed: 3, Self: []string{self, asPlugin}, Progress: &progress}
	if testing.Short() {
		o.Dispatches, o.Plugins = 600, 6
	}
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatalf("%v\n%s", err, &progress)
	}
	var text strings.Builder
	if err := r.Write(&text); err != nil {
		t.Fatal(err)
	}
	t.Log(text.String())
	if len(r.Problems) > 0 {
		t.Errorf("problems: %q", r.Problems)
	}
	if r.Dispatches != o.Dispatches || len(r.Samples) < 5 || r.Reloads == 0 {
		t.Errorf("%d dispatches, %d samples, %d reloads", r.Dispatches, len(r.Samples), r.Reloads)
	}
	bad := uint64(0)
	for what, n := range r.Runs {
		if what != "succeeded" {
			bad += n
		}
	}
	if r.Runs["succeeded"] == 0 || bad == 0 {
		t.Errorf("nothing went wrong, or everything: %v", r.Runs)
	}
	data, err := json.Marshal(r)
	if err != nil || !bytes.Contains(data, []byte(`"problems":`)) {
		t.Errorf("as JSON: %s, %v", data, err)
	}
}

// steady is a report of a run in which nothing changed.
func steady() *Report {
	at := func(at string, dispatches uint64) Sample {
		return Sample{At: at, Dispatches: dispatches, HeapBytes: 5 << 20, Descriptors: 129, Goroutines: 508, Processes: 20}
	}
	return &Report{Dispatches: 1_000_000, Samples: []Sample{
		{At: "before", HeapBytes: 1 << 20, Descriptors: 9, Goroutines: 3},
		at("start", 500), at("500000", 500_000), at("1000000", 1_000_000),
		{At: "closed", HeapBytes: 2 << 20, Descriptors: 9, Goroutines: 3},
	}}
}

// TestJudge: what a run is failed for.
func TestJudge(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name   string
		change func(r *Report)
		want   string // begins the one problem; "" is none
	}{
		{"nothing", func(*Report) {}, ""},
		{"a little", func(r *Report) {
			r.Samples[3].Descriptors += 4
			r.Samples[3].Goroutines -= 4
			r.Samples[3].Processes += 4
		}, ""},
		{"in between only", func(r *Report) { r.Samples[2].Descriptors += 500 }, ""},
		{"descriptors", func(r *Report) { r.Samples[3].Descriptors += 5 }, "in the steady state: 134 descriptors"},
		{"goroutines", func(r *Report) { r.Samples[3].Goroutines += 5 }, "in the steady state: 513 goroutines"},
		{"fewer processes", func(r *Report) { r.Samples[3].Processes -= 5 }, "in the steady state: 15 processes"},
		{"heap, just so", func(r *Report) { r.Samples[3].HeapBytes += 9 << 20 }, ""},
		{"heap", func(r *Report) { r.Samples[3].HeapBytes += 11 << 20 }, "the heap grows by 1.1 MiB"},
		{"heap of a short run", func(r *Report) { r.Samples[3].Dispatches = 2000; r.Samples[3].HeapBytes += 2 << 20 }, "the heap grows by 2.0 MiB"},
		{"a process after Close", func(r *Report) { r.Samples[4].Processes = 1 }, "1 processes are left"},
		{"descriptors after Close", func(r *Report) { r.Samples[4].Descriptors = 14 }, "after Close, beside before: 14 descriptors"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			r := steady()
			tt.change(r)
			r.judge()
			switch {
			case tt.want == "" && len(r.Problems) > 0:
				t.Errorf("problems: %q", r.Problems)
			case tt.want != "" && (len(r.Problems) != 1 || !strings.HasPrefix(r.Problems[0], tt.want)):
				t.Errorf("problems: %q, want one that begins %q", r.Problems, tt.want)
			}
			var text strings.Builder
			if err := r.Write(&text); err != nil || strings.Contains(text.String(), "FAILED") == (tt.want == "") {
				t.Errorf("%v; says:\n%s", err, &text)
			}
		})
	}
}

// TestDeclarations: a third of the plugins is bad and the others are not, the same
// seed gives the same declarations, and calm ones are always the same.
func TestDeclarations(t *testing.T) {
	t.Parallel()

	o := Options{Plugins: 20, Seed: 5, Self: []string{"soak", asPlugin}}
	one, two := newDeclarer(o), newDeclarer(o)
	calm := one.calm().Plugins
	used := map[string]bool{}
	for range 200 {
		first, second := one.next().Plugins, two.next().Plugins
		if diff := cmp.Diff(argsOf(first), argsOf(second)); diff != "" {
			t.Fatalf("the same seed (-one +two):\n%s", diff)
		}
		bad := 0
		for _, p := range first {
			used[p.Args[1]] = true
			if good := strings.HasPrefix(p.Name, "good"); good != (p.Args[1] == "good") {
				t.Errorf("%s is %q", p.Name, p.Args)
			} else if !good {
				bad++
			}
		}
		if bad != 6 {
			t.Errorf("%d of %d are bad", bad, len(first))
		}
	}
	for i, p := range one.calm().Plugins {
		if isBad(i) && !cmp.Equal(p.Args, calm[i].Args) {
			t.Errorf("%s is %q, was %q", p.Name, p.Args, calm[i].Args)
		}
	}
	known := badplugin.Modes()
	for _, m := range modes() {
		if !slices.Contains(known, m.name) {
			t.Errorf("there is no mode %q", m.name)
		}
		if !used[m.name] {
			t.Errorf("mode %q was not drawn in 200 times", m.name)
		}
	}
	if !used[modeRandom] {
		t.Error("no plugin was random")
	}
}

func argsOf(plugins []config.Plugin) [][]string {
	var all [][]string
	for _, p := range plugins {
		all = append(all, p.Args)
	}
	return all
}

// TestPluginByHand: the program is no plugin without a host, and knows its modes.
func TestPluginByHand(t *testing.T) {
	t.Parallel()

	exit := func(int) { t.Error("it ends the process") }
	for _, args := range [][]string{nil, {"goodness"}} {
		if status := Plugin(nil, args, exit); status != 2 {
			t.Errorf("%q: status %d", args, status)
		}
	}
}

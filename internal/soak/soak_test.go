//go:build linux

package soak

import (
	"bytes"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/badplugin"
)

// asPlugin makes the test binary a plugin.
const asPlugin = "soak-plugin"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asPlugin {
		os.Exit(pluginMain(os.Args[:2], os.Args[2:], os.Exit))
	}
	goleak.VerifyTestMain(m)
}

// TestSoak is a soak of some seconds. GRAPNEL_SOAK makes it longer: a time ("30m") or a number of dispatches;
// GRAPNEL_SOAK_SEED draws another mixture. It is not parallel: it counts what the whole process has.
func TestSoak(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var progress bytes.Buffer
	o := options{dispatches: 600, plugins: 6, seed: 3, callers: 16, self: []string{self, asPlugin}, progress: &progress}
	if os.Getenv("GRAPNEL_LONG") != "" || os.Getenv("GRAPNEL_SOAK") != "" {
		o.dispatches, o.plugins = 3000, 20
	}
	if long := os.Getenv("GRAPNEL_SOAK"); long != "" {
		o.progress = os.Stderr
		if o.dispatches, err = strconv.ParseUint(long, 10, 64); err != nil {
			o.dispatches = math.MaxUint32
			o.limit, err = time.ParseDuration(long)
		}
		if err != nil || o.dispatches == 0 || o.limit < 0 {
			t.Fatalf("GRAPNEL_SOAK=%q is neither a time nor a number of dispatches", long)
		}
	}
	if seed := os.Getenv("GRAPNEL_SOAK_SEED"); seed != "" {
		if o.seed, err = strconv.ParseUint(seed, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	r, err := soak(t.Context(), o)
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
	if o.limit == 0 && r.Dispatches != o.dispatches || len(r.Samples) < 5 || r.Reloads+r.Refused == 0 {
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
}

// steady is a report of a run in which nothing changed.
func steady() *report {
	at := func(at string, dispatches uint64) sample {
		return sample{At: at, Dispatches: dispatches, HeapBytes: 5 << 20, Descriptors: 129, Goroutines: 508, Processes: 20}
	}
	return &report{Dispatches: 1_000_000, Samples: []sample{
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
		change func(r *report)
		want   string // begins the one problem; "" is none
	}{
		{"nothing", func(*report) {}, ""},
		{"a little", func(r *report) {
			r.Samples[3].Descriptors += 4
			r.Samples[3].Goroutines -= 4
			r.Samples[3].Processes += 4
		}, ""},
		{"in between only", func(r *report) { r.Samples[2].Descriptors += 500 }, ""},
		{"descriptors", func(r *report) { r.Samples[3].Descriptors += 5 }, "in the steady state: 134 descriptors"},
		{"goroutines", func(r *report) { r.Samples[3].Goroutines += 5 }, "in the steady state: 513 goroutines"},
		{"fewer processes", func(r *report) { r.Samples[3].Processes -= 5 }, "in the steady state: 15 processes"},
		{"heap, just so", func(r *report) { r.Samples[3].HeapBytes += 9 << 20 }, ""},
		{"heap", func(r *report) { r.Samples[3].HeapBytes += 11 << 20 }, "the heap grows by 1.1 MiB"},
		{"heap of a short run", func(r *report) { r.Samples[3].Dispatches = 2000; r.Samples[3].HeapBytes += 2 << 20 }, "the heap grows by 2.0 MiB"},
		{"a process after Close", func(r *report) { r.Samples[4].Processes = 1 }, "1 processes are left"},
		{"descriptors after Close", func(r *report) { r.Samples[4].Descriptors = 14 }, "after Close, beside before: 14 descriptors"},
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

	o := options{plugins: 20, seed: 5, self: []string{"soak", asPlugin}}
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
		if status := pluginMain(nil, args, exit); status != 2 {
			t.Errorf("%q: status %d", args, status)
		}
	}
}

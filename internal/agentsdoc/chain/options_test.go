package chain

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// all compares fields that are not exported too.
func all() cmp.Option { return cmp.Exporter(func(reflect.Type) bool { return true }) }

func TestPresets(t *testing.T) {
	t.Parallel()
	type row struct {
		Names, Local, Markers []string
		Empty                 EmptyOverride
		Checks                Checks
		Layout                Layout
		Placement             Placement
		Budget                Limits
		Delivery              Delivery
		Changed               ChangedWhen
		RootFirst             bool
		Global                string
	}
	falls, shadows := OverrideFallsThrough, OverrideShadows
	tests := map[Preset]row{
		PresetDefault: {
			[]string{"AGENTS.override.md", "AGENTS.md"},
			[]string{"AGENTS.local.md"},
			[]string{".git", ".jj", ".hg"},
			EmptyOverride{falls, falls},
			Checks{true, true, true, true, true, true},
			LayoutDelimited, PlaceSystem,
			Limits{32768, 32768, 32, 1024, 4096},
			DeliverBody, ChangedByHash, false, "/h/.config/grapnel",
		},
		PresetCodex: {
			[]string{"AGENTS.override.md", "AGENTS.md"},
			[]string{},
			[]string{".git"},
			EmptyOverride{shadows, falls},
			Checks{},
			LayoutJoined, PlaceUserMessage,
			Limits{Total: 32768},
			DeliverOff, ChangedNeverResolved, false, "/h/.codex",
		},
		PresetCodelia: {
			[]string{"AGENTS.md"},
			[]string{},
			[]string{".codelia", ".git", ".jj"},
			EmptyOverride{falls, falls},
			Checks{},
			LayoutTitled, PlaceSystemMessage,
			Limits{Total: 262144, Files: 16},
			DeliverReminder, ChangedByTimeOrHash, true, "",
		},
	}
	for name, want := range tests {
		o, err := ForPreset(name, Places{Home: "/h"})
		if err != nil {
			t.Fatal(err)
		}
		got := row{
			o.Names, o.LocalNames, o.Markers, o.EmptyOverride, o.Checks, o.Layout, o.Placement, o.Budget,
			o.Resolver.Delivery, o.Resolver.ChangedWhen, o.Resolver.RootFirst, o.GlobalDir,
		}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("%s: (-got +want)\n%s", name, diff)
		}
		if o.Trust != TrustAll || (o.Untrusted != UntrustedNames && o.Preset != PresetCodex) || o.ChildHint || o.Imports != ImportOff || len(o.FallbackNames) > 0 {
			t.Errorf("%s: what all share is %+v", name, o)
		}
		if data, err := json.Marshal(o); err != nil || strings.Contains(string(data), "null") {
			t.Errorf("%s: a list that is none: %s, %v", name, data, err)
		}
		if diff := cmp.Diff(o.Filled(), o, all()); diff != "" {
			t.Errorf("%s does not mean what it says (-got +want)\n%s", name, diff)
		}
	}
	if _, err := ForPreset("other", Places{}); err == nil || !strings.Contains(err.Error(), "codelia") {
		t.Errorf("error is %v", err)
	}
}

func TestPlacesOfPresets(t *testing.T) {
	t.Parallel()
	at := Places{Home: "/h/", ConfigHome: "/x", CodexHome: "relative"}
	for name, want := range map[Preset]string{PresetDefault: "/x/grapnel", PresetCodex: "/h/.codex", PresetCodelia: ""} {
		o, err := ForPreset(name, at)
		if err != nil {
			t.Fatal(err)
		}
		if o.GlobalDir != want || o.Home != "/h" || !cmp.Equal(o.ConfigDirs, []string{"/x", "/h/.config", "/h/.codex"}) {
			t.Errorf("%s: global %q, home %q, configuration %q", name, o.GlobalDir, o.Home, o.ConfigDirs)
		}
	}
	if o := Default(); o.GlobalDir != "" || o.Home != "" || len(o.ConfigDirs) > 0 {
		t.Errorf("without places there are %+v", o)
	}
}

func TestFilled(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(Options{}.Filled(), Default(), all()); diff != "" {
		t.Errorf("zero (-got +want)\n%s", diff)
	}
	want := Default()
	want.Names, want.Markers, want.Trust = []string{"X"}, []string{}, TrustNone
	want.Budget.File, want.Budget.Total, want.Checks = 7, 8, Checks{Duplicates: true}
	given := Options{Names: []string{"X"}, Markers: []string{}, Trust: TrustNone, Budget: Limits{File: 7, Total: 8}, Checks: Checks{Duplicates: true}}
	got := given.Filled()
	if diff := cmp.Diff(got, want, all()); diff != "" {
		t.Errorf("(-got +want)\n%s", diff)
	}
	got.Names[0] = "changed"
	if given.Names[0] != "X" {
		t.Error("a list is shared")
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"AGENTS.md", ".git", "a b", "..a"} {
		if !IsFileName(name) {
			t.Errorf("%q is no file name", name)
		}
	}
	for _, name := range []string{"", ".", "..", "a/b", "/", "a\x00", "../x"} {
		if IsFileName(name) {
			t.Errorf("%q is a file name", name)
		}
	}
	if !IsOverride("AGENTS.override.md") || IsOverride("AGENTS.md") || IsOverride("override.md") {
		t.Error("overrides are told by another sign")
	}
}

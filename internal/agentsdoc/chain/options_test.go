package chain

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

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

package sandbox

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// onUnix skips tests whose paths are those of unix systems.
func onUnix(t *testing.T) {
	t.Helper()

	if runtime.GOOS == "windows" {
		t.Skip("paths have another form here")
	}
}

func TestTier(t *testing.T) {
	t.Parallel()

	for _, tier := range []Tier{T0, T1, T2} {
		if got, err := ParseTier(tier.String()); err != nil || got != tier {
			t.Errorf("ParseTier(%q) = %v, %v", tier, got, err)
		}
	}
	if got, err := ParseTier(""); err != nil || got != T0 {
		t.Errorf(`ParseTier("") = %v, %v, want T0`, got, err)
	}
	for _, s := range []string{"t1", "T3", "1"} {
		if got, err := ParseTier(s); err == nil || !strings.Contains(err.Error(), s) {
			t.Errorf("ParseTier(%q) = %v, %v", s, got, err)
		}
	}
	if got := Tier(9).String(); got != "undefined tier 9" {
		t.Errorf("Tier(9) = %q", got)
	}
}

func TestFromGrants(t *testing.T) {
	t.Parallel()
	onUnix(t)

	tests := []struct {
		name             string
		read, write, net []string
		want             Policy
		problem          string
	}{
		{name: "nothing"},
		{name: "files", read: []string{"/a", "/b/", "/c/*"}, write: []string{"/d/../e"}, want: Policy{Read: []string{"/a", "/b", "/c"}, Write: []string{"/e"}}},
		{name: "all files", read: []string{"*"}, write: []string{"/*"}, want: Policy{Read: []string{"/"}, Write: []string{"/"}}},
		{name: "ports", net: []string{"*:443", "listen:80", "*:1"}, want: Policy{Net: Net{Connect: []uint16{443, 1}, Listen: []uint16{80}}}},
		{name: "all of the network", net: []string{"*"}, want: Policy{Net: Net{All: true}}},
		{name: "part of a name", read: []string{"/srv/docs*"}, problem: `"/srv/*"`},
		{name: "not absolute", write: []string{"docs"}, problem: "is not an absolute path"},
		{name: "home", read: []string{"~/docs"}, problem: "is not an absolute path"},
		{name: "a machine", net: []string{"example.org:443"}, problem: `"*:443" allows this port on all`},
		{name: "a machine by number", net: []string{"[::1]:80"}, problem: `"*:80"`},
		{name: "no port", net: []string{"example.org"}, problem: `"listen:PORT"`},
		{name: "port 0", net: []string{"*:0"}, problem: `"0" is not a port`},
		{name: "a great port", net: []string{"*:65536"}, problem: "is not a port"},
		{name: "a port by name", net: []string{"*:https"}, problem: `"https" is not a port`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			got, err := FromGrants(tt.read, tt.write, tt.net)
			if (err != nil) != (tt.problem != "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
				t.Fatalf("error %v, want %q", err, tt.problem)
			}
			if diff := cmp.Diff(got, tt.want, cmpopts.IgnoreUnexported(Policy{})); diff != "" {
				t.Errorf("policy (-got +want):\n%s", diff)
			}
		})
	}
}

func FuzzFromGrants(f *testing.F) {
	for _, s := range []string{"*", "/a/*", "/a*", "*:443", "listen:1", "a:b:c", "/\x00"} {
		f.Add(s, s, s)
	}
	f.Fuzz(func(t *testing.T, read, write, net string) {
		p, err := FromGrants([]string{read}, []string{write}, []string{net})
		if err != nil {
			if len(p.Read)+len(p.Write) > 0 || !p.Net.none() {
				t.Fatalf("an error and a policy: %+v, %v", p, err)
			}
			return
		}
		if err := p.Validate(); err != nil || len(p.Read) != 1 || len(p.Write) != 1 || p.Net.none() {
			t.Fatalf("grants %q, %q, %q give %+v, %v", read, write, net, p, err)
		}
		if p.Net.All != (net == "*") {
			t.Fatalf("grant %q lifts all bounds: %v", net, p.Net.All)
		}
	})
}

func TestSupportCheck(t *testing.T) {
	t.Parallel()

	all := Policy{Net: Net{All: true}}
	tests := []struct {
		name   string
		s      Support
		policy Policy
		why    string
	}{
		{"nothing", Support{NoLandlock: "no Landlock"}, all, "the sandbox tier T1 is not reachable here: no Landlock"},
		{"no cutting", Support{Landlock: 2}, all, "has version 2, and keeping files from being cut needs 3 (Linux 6.2)"},
		{"no network, and none to be kept from", Support{Landlock: 3}, all, ""},
		{"no network", Support{Landlock: 3}, Policy{}, "has version 3, and keeping programs from the network needs 4 (Linux 6.7)"},
		{"some network", Support{Landlock: 3}, Policy{Net: Net{Connect: []uint16{1}}}, "needs 4"},
		{"enough", Support{Landlock: 4}, Policy{}, ""},
		{"a later one", Support{Landlock: 99}, Policy{}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			err := tt.s.Reach(T1, tt.policy, "")
			if tt.why == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if u, ok := errors.AsType[*UnreachableError](err); !ok || u.Tier != T1 || !strings.Contains(err.Error(), tt.why) {
				t.Errorf("error %v, want %q", err, tt.why)
			}
		})
	}
	if err := (Support{}).Reach(T0, Policy{}, ""); err != nil {
		t.Errorf("T0: %v", err)
	}
	if err := (Support{Landlock: 7}).Reach(T2, Policy{}, t.TempDir()); err == nil || !strings.Contains(err.Error(), "tier T2 is not reachable here") {
		t.Errorf("T2 without control groups: %v", err)
	}
}

func TestSupportMissing(t *testing.T) {
	t.Parallel()

	tests := []struct {
		name   string
		s      Support
		policy Policy
		want   []string // beginnings
	}{
		{"best", Support{Landlock: 9, Signals: true, Filter: true}, Policy{Net: Net{All: true}}, nil},
		{"sockets by the filter", Support{Landlock: 7, Signals: true, Filter: true}, Policy{}, nil},
		{"sockets beside a network", Support{Landlock: 8, Signals: true, Filter: true}, Policy{Net: Net{Connect: []uint16{443}}}, []string{"unix sockets of other"}},
		{"sockets are granted", Support{Landlock: 7, Signals: true, Filter: true}, Policy{Write: []string{"/"}, Net: Net{All: true}}, nil},
		{"no devices", Support{Landlock: 4, Filter: true}, Policy{}, []string{"commands to devices", "abstract unix", "signals"}},
		{"devices are granted", Support{Landlock: 4, Filter: true}, Policy{Write: []string{"/"}}, []string{"abstract unix", "signals"}},
		{"signals would harm the host", Support{Landlock: 6, Filter: true}, Policy{}, []string{"signals"}},
		{"no filter", Support{Landlock: 7, Signals: true}, Policy{}, []string{"unix sockets of other", "sockets other than TCP"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()

			got := tt.s.Missing(tt.policy)
			if !slices.EqualFunc(got, tt.want, strings.HasPrefix) {
				t.Errorf("missing %q, want %q", got, tt.want)
			}
		})
	}
}

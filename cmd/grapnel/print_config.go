package main

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/phases"
)

// milliseconds is a duration as numbers in JSON have it.
func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// printChecked prints what is in force.
func (a *app) printChecked(r *checked) {
	a.printf("%s", rule("configuration"))
	a.printf("%s (%s)\n", clean(r.Source), clean(r.Why))
	if r.Pin != "" {
		a.println("checksums are", r.Pin)
	}
	if r.Store != "" {
		a.println("store", clean(r.Store))
	}
	for i := range r.Plugins {
		a.printCheckedPlugin(&r.Plugins[i])
	}
	a.printCheckedBudgets(&r.Budgets)
	t := newTable("timeouts that were lowered to the budget of their phase", "subscription", "phase", ">proposed ms", ">timeout ms")
	for _, l := range r.Lowered {
		t.add(l.Subscription, l.Phase, l.ProposedTimeoutMS, l.TimeoutMS)
	}
	a.printTable(t)
	t = newTable("subscriptions that are off", "subscription", "phase", "reason")
	for _, o := range r.Off {
		t.add(o.Subscription, o.Phase, o.Reason)
	}
	a.printTable(t)
	a.printDiagnostics(r.Diagnostics)
	switch {
	case r.Offline:
		a.println("\nthe file has no mistakes; the plugins were not asked (--offline)")
	case slices.ContainsFunc(r.Plugins, func(p checkedPlugin) bool { return p.Status != nil && p.Status.State != phases.PluginReady }):
		a.println("\nthe configuration has no mistakes, but not every plugin started")
	default:
		a.println("\nthe configuration has no mistakes")
	}
}

// printCheckedPlugin prints one plugin: what is started, what it may do, what
// the operator changed.
func (a *app) printCheckedPlugin(p *checkedPlugin) {
	a.printf("\nplugin %s\n", clean(p.Plugin))
	t := newTable("")
	switch {
	case p.Builtin != "":
		t.add("program", "built in: "+p.Builtin)
	case p.Program != "":
		t.add("program", p.Program)
		pin := "unpinned; see: grapnel plugin pin"
		if p.SHA256 != "" {
			pin = "pinned " + shortSum(p.SHA256)
		}
		t.add("checksum", pin)
	}
	if s := p.Status; s != nil {
		state := string(s.State)
		if s.Version != "" {
			state += ", version " + s.Version
		}
		if s.Code != "" {
			state += ": " + detailText(s)
		}
		t.add("state", state)
	}
	addConfinement(t, p)
	for _, g := range grantRows(&p.Grants) {
		if len(g.names) > 0 {
			t.add("may "+g.what, strings.Join(g.names, ", "))
		}
	}
	if len(p.PassEnv) > 0 {
		t.add("environment", strings.Join(p.PassEnv, ", "))
	}
	if len(p.SetEnv) > 0 {
		t.add("environment set", strings.Join(p.SetEnv, ", "))
	}
	for _, id := range slices.Sorted(maps.Keys(p.Overrides)) {
		t.add("override "+id, overrideText(p.Overrides[id]))
	}
	a.printTable(t)
}

// addConfinement adds what keeps a plugin from what it is not granted, where that
// is more than what every plugin has.
func addConfinement(t *table, p *checkedPlugin) {
	if p.Sandbox != "T0" {
		t.add("sandbox", p.Sandbox+", by "+p.SandboxKey)
	}
	if s := p.Status; s != nil {
		for _, lack := range s.TierLacks {
			t.add("sandbox lacks", lack)
		}
		for _, path := range s.AbsentPaths {
			t.add("not granted", path+" was not there when it started")
		}
	}
	if p.TLS {
		t.add("connection", "with certificates")
	}
	if p.MemoryLimit > 0 {
		t.add("memory", "at most "+config.Size(p.MemoryLimit).String())
	}
}

// grantRow is one list of grants.
type grantRow struct {
	what  string
	names []string
}

// grantRows lists grants in the order of the configuration's documentation.
func grantRows(g *phases.Grants) []grantRow {
	return []grantRow{
		{"contribute", g.Contribute},
		{"write sections", g.Sections},
		{"write stable sections", g.StableSections},
		{"join sections", g.Join},
		{"set policies", g.Policies},
		{"speak for domains", g.Domains},
		{"offer tools", g.Tools},
		{"call host services", g.Host},
		{"read", g.Read},
		{"write", g.Write},
		{"reach", g.Net},
		{"see", g.See},
	}
}

// overrideText is an override as the file has it, without the braces.
func overrideText(o phases.Override) string {
	data, err := encodeJSON(o)
	if err != nil {
		return err.Error()
	}
	return strings.Trim(strings.Join(strings.Fields(string(data)), " "), "{} ")
}

// printCheckedBudgets prints the turn's budget and those of phases that differ
// from the default or require something.
func (a *app) printCheckedBudgets(b *checkedBudgets) {
	a.printf("\na turn has %s ms and %s characters\n", millis(b.TurnMS), text.Thousands(b.TurnChars))
	t := newTable("phases with a budget of their own", "phase", ">budget ms", ">default ms", "requires")
	for _, p := range b.Phases {
		if p.BudgetMS != p.DefaultMS || len(p.Require) > 0 {
			t.add(p.Phase, p.BudgetMS, p.DefaultMS, strings.Join(p.Require, ", "))
		}
	}
	a.printTable(t)
}

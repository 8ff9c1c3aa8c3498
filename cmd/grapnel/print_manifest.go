package main

import (
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// printStored prints a kept manifest as compile prints that of its turn, with
// what only the log knows: its place, its hashes, and the provider's report.
func (a *app) printStored(m *manifest.Manifest, usage *manifest.Usage) {
	a.printHead(m)
	a.printf("created %s · seq %d · compiler %s\n", clock(m.CreatedAt), m.Seq, clean(m.CompilerVersion))
	if len(m.Sections) == 0 {
		a.println("there is no prompt: the turn was blocked")
	}
	a.printContent(m)
	a.printDiagnostics(storedDiagnostics(m))
	a.printCache(m, usage)
	a.printFingerprints(&m.Fingerprints)
	a.printBudgets(&m.Budgets)
	a.printIntegrity(&m.Integrity)
}

// storedDiagnostics are a manifest's diagnostics in the form of a turn's. Their
// messages are there where they were safe to keep.
func storedDiagnostics(m *manifest.Manifest) []phases.Diagnostic {
	rows := make([]phases.Diagnostic, len(m.Diagnostics))
	for i, d := range m.Diagnostics {
		rows[i] = phases.Diagnostic{Code: d.Code, Severity: d.Severity, Message: d.Message, Subscription: d.HookSource, Slot: d.SectionID}
	}
	return rows
}

// printIntegrity prints the hashes: of the content, to compare two turns by; of
// the record and the one before it, to find it in the chain.
func (a *app) printIntegrity(i *manifest.Integrity) {
	t := newTable("")
	t.add("hash", i.Hash)
	t.add("prev", i.Prev)
	t.add("content", i.ContentHash)
	a.println("\nchain")
	a.printTable(t)
}

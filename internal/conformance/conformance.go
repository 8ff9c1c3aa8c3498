package conformance

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/internal/proc"
	"github.com/grapnelhq/grapnel/internal/wire"
	"github.com/grapnelhq/grapnel/phases"
)

// Severity says what a failed check means.
type Severity string

// The severities.
const (
	Must   Severity = "must"   // a host cannot work with the plugin, or must not
	Should Severity = "should" // a host copes
)

// Outcome is how a check ended.
type Outcome string

// The outcomes.
const (
	Passed  Outcome = "passed"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped" // it does not apply, or could not be tried
	Known   Outcome = "known"   // it failed and is listed as failing
	Stale   Outcome = "stale"   // it passed and is listed as failing
)

// Severities returns all severities.
func Severities() []Severity { return []Severity{Must, Should} }

// Outcomes returns all outcomes.
func Outcomes() []Outcome { return []Outcome{Passed, Failed, Skipped, Known, Stale} }

// Options say what is checked, and how.
type Options struct {
	Path      string // the absolute path of the program
	Args      []string
	Env       []string        // names of variables that the plugin inherits
	Sandbox   proc.Sandbox    // how the plugin is confined
	Transport string          // "grpc" (the default) or "stdio"
	Config    json.RawMessage // the plugin's configuration
	Known     []string        // ids of checks that are known to fail
	Only      []string        // ids of the checks to run; all if empty
	Calls     int             // in the check for leaking descriptors; 1,000 if 0
	Patience  time.Duration   // how long to wait for each answer; 10 s if 0
	Progress  func(*Result)   // if set, is called after each check
}

// Result is the outcome of one check.
type Result struct {
	ID       string   `json:"id"`
	Title    string   `json:"title"`
	Severity Severity `json:"severity"`
	Outcome  Outcome  `json:"outcome"`
	Reason   string   `json:"reason"   jsonschema:"why it failed or was skipped"`
	Sent     []string `json:"sent"     jsonschema:"the last frames to the plugin that a failure is about, shortened"`
	Came     []string `json:"came"     jsonschema:"the last frames from the plugin that a failure is about, shortened"`
	Contract string   `json:"contract" jsonschema:"what the contract says"`
	Place    string   `json:"place"    jsonschema:"where it says so"`
	MS       float64  `json:"ms"`
}

// Report is the outcome of all checks.
type Report struct {
	Program   string   `json:"program"`
	Transport string   `json:"transport"`
	Plugin    string   `json:"plugin"    jsonschema:"the plugin's own name; empty if it did not start"`
	Version   string   `json:"version"`
	Conforms  bool     `json:"conforms"  jsonschema:"no check with the severity must has failed, and no known failure passes"`
	Passed    int      `json:"passed"`
	Failed    int      `json:"failed"`
	Skipped   int      `json:"skipped"`
	Known     int      `json:"known"     jsonschema:"failures that were listed"`
	Results   []Result `json:"results"`
}

// Run checks a plugin. It returns an error if the plugin could not be tried; the plugin's faults are in the report.
func Run(ctx context.Context, o Options) (*Report, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	r := &Report{Program: o.Path, Transport: o.Transport, Results: []Result{}}
	run := &run{o: &o}
	for _, c := range checks() {
		isWanted := len(o.Only) == 0 || slices.Contains(o.Only, c.id)
		if !isWanted && !c.isGate() {
			continue
		}
		res := run.one(ctx, c)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if c.isGate() && res.Outcome == Failed && run.stopped == "" {
			run.stopped = c.id
		}
		if !isWanted {
			continue
		}
		r.add(res, slices.Contains(o.Known, c.id))
		if o.Progress != nil {
			o.Progress(&r.Results[len(r.Results)-1])
		}
	}
	if d := run.described; d != nil {
		r.Plugin, r.Version = d.Name, d.Version
	}
	return r, nil
}

func (o Options) withDefaults() Options {
	o.Transport = cmp.Or(o.Transport, wire.Transport)
	o.Calls = cmp.Or(max(o.Calls, 0), 1000)
	o.Patience = cmp.Or(max(o.Patience, 0), 10*time.Second)
	return o
}

func (r *Report) add(res Result, known bool) {
	switch {
	case known && res.Outcome == Failed:
		res.Outcome = Known
	case known && res.Outcome == Passed:
		res.Outcome, res.Reason = Stale, "it passes: remove it from the list of known failures"
	}
	switch res.Outcome {
	case Passed:
		r.Passed++
	case Skipped:
		r.Skipped++
	case Known:
		r.Known++
	case Failed, Stale:
		r.Failed++
	}
	r.Conforms = (r.Conforms || len(r.Results) == 0) && !res.Fails()
	r.Results = append(r.Results, res)
}

// Fails reports whether a plugin with this result does not conform.
func (r *Result) Fails() bool {
	return r.Outcome == Stale || r.Outcome == Failed && r.Severity == Must
}

// run is what the checks of one plugin share. The first two checks fill it in.
type run struct {
	o          *Options
	stopped    string              // the id of a failed check without which no other can be tried
	described  *phases.Description // before the configuration
	configured *phases.Description
	longest    int // the size of the longest frame with a description
}

// trial is one check that runs.
type trial struct {
	*run

	ctx   context.Context //nolint:containedctx // of this check
	hosts []*host         // that it has started
}

// skipped ends a check that cannot be tried.
type skipped string

func (s skipped) Error() string { return string(s) }

// failure ends a check; ids are those of the frames that it is about.
type failure struct {
	reason string
	ids    []uint64
}

func (f *failure) Error() string { return f.reason }

func failf(ids []uint64, format string, args ...any) error {
	return &failure{fmt.Sprintf(format, args...), ids}
}

// longestCheck bounds a check of a plugin that only just keeps every other limit.
const longestCheck = 2 * time.Minute

func (r *run) one(ctx context.Context, c *check) Result {
	res := Result{
		ID: c.id, Title: c.title, Severity: c.severity, Outcome: Passed, Contract: c.contract, Place: c.place, Sent: []string{}, Came: []string{},
	}
	if r.stopped != "" {
		res.Outcome, res.Reason = Skipped, "the plugin does not get that far: see "+r.stopped
		return res
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, longestCheck)
	defer cancel()
	t := &trial{run: r, ctx: ctx}
	err := c.run(t)
	for _, h := range t.hosts {
		h.stop() //nolint:contextcheck // it is the trial's
	}
	res.MS = float64(time.Since(began).Microseconds()) / 1000
	reason, isSkipped := errors.AsType[skipped](err)
	switch {
	case isSkipped:
		res.Outcome, res.Reason = Skipped, string(reason)
	case err != nil:
		res.Outcome, res.Reason = Failed, phases.Whole(err)
		if len(t.hosts) > 0 {
			res.Sent, res.Came = t.hosts[len(t.hosts)-1].evidence(err)
		}
	}
	return res
}

// spec says how the plugin is started.
func (r *run) spec() proc.Spec {
	return proc.Spec{
		Name: "checked", Path: r.o.Path, Args: r.o.Args, Env: proc.Environment{Pass: r.o.Env}, AllowUnsafePath: true, Sandbox: r.o.Sandbox,
		Stdio: r.o.Transport == wire.TransportStdio, Frame: wire.MaxFrame, CountOrphans: true,
	}
}

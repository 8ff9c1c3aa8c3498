package gateway

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
)

// TroubleKind says what is the matter, as a word.
type TroubleKind string

// The kinds, the worst first.
const (
	// TroubleQuarantined is a plugin that is not started any more.
	TroubleQuarantined TroubleKind = "quarantined"
	// TroubleBackoff is a plugin that failed and is started again by itself.
	TroubleBackoff TroubleKind = "backoff"
	// TroubleBreaker is a hook that is not asked because it failed too often in a
	// row.
	TroubleBreaker TroubleKind = "breaker_open"
	// TroubleFailing is a hook whose last run failed.
	TroubleFailing TroubleKind = "failing"
	// TroubleDegraded is a plugin that takes calls and is not well.
	TroubleDegraded TroubleKind = "degraded"
	// TroubleHanging is a plugin that has not answered calls which were left.
	TroubleHanging TroubleKind = "hanging"
	// TroubleBusy is a plugin whose slots are all taken while calls wait.
	TroubleBusy TroubleKind = "busy"
	// TroubleSandbox is a plugin whose sandbox lacks something that was asked for.
	TroubleSandbox TroubleKind = "sandbox_partial"
)

// troubleKinds are the kinds in that order.
func troubleKinds() []TroubleKind {
	return []TroubleKind{TroubleQuarantined, TroubleBackoff, TroubleBreaker, TroubleFailing, TroubleDegraded, TroubleHanging, TroubleBusy, TroubleSandbox}
}

// Trouble is one plugin or hook that somebody should look at.
type Trouble struct {
	Kind   TroubleKind `json:"kind"`
	Plugin string      `json:"plugin"`
	// Subscription is the hook's; empty where the plugin itself, its tools or its
	// model calls are in trouble. Phase is empty for the plugin itself.
	Subscription string       `json:"subscription"`
	Phase        phases.Phase `json:"phase"`
	// Code is the cause, Reason the same for people. At is when it last failed, or
	// came into its state.
	Code   string    `json:"code"`
	Reason string    `json:"reason"`
	At     time.Time `json:"at"`
	// InARow is how many runs failed since one succeeded, FailOpen how many failures
	// of it have not stopped their phase so far. Of a plugin that is down these are
	// its hooks' together.
	InARow   uint64 `json:"failed_in_a_row"`
	FailOpen uint64 `json:"fail_open"`
	// Remedy is what may help.
	Remedy string `json:"remedy"`
}

// troubles finds what is in trouble now. What has failed and succeeded since is in the
// figures, and in no trouble.
func troubles(o *runtime.Overview) []Trouble {
	all := []Trouble{}
	down := map[string]int{} // the places of plugins that take no calls
	for i := range o.Plugins {
		p := &o.Plugins[i]
		if t, ok := ofPlugin(p); ok {
			if t.Kind == TroubleQuarantined || t.Kind == TroubleBackoff {
				down[p.Plugin] = len(all)
			}
			all = append(all, t)
		}
	}
	for i := range o.Hooks {
		h := &o.Hooks[i]
		t, ok := ofHook(h)
		if !ok {
			continue
		}
		if at, isDown := down[h.Plugin]; isDown && followsFromDown(t.Code) {
			all[at].InARow += t.InARow
			all[at].FailOpen += t.FailOpen
			continue
		}
		all = append(all, t)
	}
	slices.SortStableFunc(all, func(a, b Trouble) int {
		return cmp.Compare(slices.Index(troubleKinds(), a.Kind), slices.Index(troubleKinds(), b.Kind))
	})
	return all
}

// followsFromDown reports whether a hook may have failed only because its plugin is
// down.
func followsFromDown(code string) bool {
	switch phases.Cause(code) {
	case phases.CauseUnavailable, phases.CauseQuarantined, phases.CauseCrash, phases.CauseOOM, phases.CauseSessionReset:
		return true
	}
	return false
}

// ofPlugin is the trouble of a plugin itself.
func ofPlugin(p *runtime.PluginHealth) (Trouble, bool) {
	t := Trouble{Plugin: p.Plugin, Code: p.Code, Reason: p.Message, At: p.Since}
	full := p.Working >= p.Concurrency && p.Waiting > 0
	switch {
	case p.State == phases.PluginQuarantined:
		t.Kind = TroubleQuarantined
		t.Remedy = remedyOf(p.Code, "find out why it fails (its last lines are in the log)") +
			"; then: grapnel plugin release " + p.Plugin + " (after a change of its configuration: grapnel config reload)"
	case p.State == phases.PluginBackoff || startsAgain(p):
		t.Kind = TroubleBackoff
		if p.State == phases.PluginStarting {
			t.Code, t.Reason, t.At = p.LastError.Code, p.LastError.Message, p.LastError.At
		}
		t.Remedy = "it is started again by itself; if it goes on: " + remedyOf(t.Code, "see its last lines in the log")
	case p.State == phases.PluginDegraded:
		t.Kind = TroubleDegraded
		t.Remedy = remedyOf(p.Code, "it still takes calls; if it lasts, see its lines in the log")
	case p.Abandoned > 0:
		t.Kind, t.Code = TroubleHanging, string(phases.CauseTimeout)
		t.Reason = fmt.Sprintf("%d of %d calls at once hang: their callers have gone, and it has not answered", p.Abandoned, p.Concurrency)
		t.Remedy = "it ignores cancellation; with too many of them its process is replaced by itself"
	case full:
		t.Kind, t.Code = TroubleBusy, string(phases.CauseOverloaded)
		t.Reason = fmt.Sprintf("it works on %d calls, its limit, and %d wait", p.Working, p.Waiting)
		t.Remedy = remedyOf(t.Code, "")
	case len(p.TierLacks)+len(p.AbsentPaths) > 0:
		sandboxed(&t, p)
	default:
		return Trouble{}, false
	}
	return t, true
}

// startsAgain reports whether a plugin is being started after a failure. One that hangs
// as it starts is hardly ever in backoff: its start takes far longer than the first
// waits.
func startsAgain(p *runtime.PluginHealth) bool {
	return p.State == phases.PluginStarting && p.Restarts > 0 && p.LastError != nil
}

// sandboxed says what a sandbox lacks.
func sandboxed(t *Trouble, p *runtime.PluginHealth) {
	t.Kind, t.Code = TroubleSandbox, string(TroubleSandbox)
	var parts, remedies []string
	if len(p.TierLacks) > 0 {
		parts = append(parts, p.Tier+" lacks on this kernel: "+strings.Join(p.TierLacks, ", "))
		remedies = append(remedies, "a newer kernel, or another tier")
	}
	if len(p.AbsentPaths) > 0 {
		parts = append(parts, "granted paths that were not there when it started: "+strings.Join(p.AbsentPaths, ", "))
		remedies = append(remedies, "paths are granted when they are there at its next start")
	}
	t.Reason, t.Remedy = strings.Join(parts, "; "), strings.Join(remedies, "; ")
}

// ofHook is the trouble of a subscription, or of a plugin's tools or model calls.
func ofHook(h *runtime.HookRow) (Trouble, bool) {
	if h.LastError == nil || h.Off != "" {
		return Trouble{}, false
	}
	t := Trouble{
		Plugin: h.Plugin, Subscription: h.Subscription, Phase: h.Phase, Code: h.LastError.Code, Reason: h.LastError.Message, At: h.LastError.At,
		InARow: h.FailedInARow, FailOpen: h.FailOpen,
	}
	if h.LastError.PluginCode != "" {
		t.Reason = "its own code is " + h.LastError.PluginCode
	}
	switch {
	case h.Breaker == "open":
		t.Kind = TroubleBreaker
		t.Code, t.Reason = worst(h)
		t.Remedy = "it is tried again every few seconds; meanwhile its failure policy applies; " + remedyOf(t.Code, "see why it failed in the log")
	case h.FailedInARow > 0:
		t.Kind = TroubleFailing
		t.Remedy = remedyOf(t.Code, "see why it failed in the log")
	default:
		return Trouble{}, false
	}
	return t, true
}

// worst is the cause that most runs failed of before the breaker opened: its own
// refusals say nothing.
func worst(h *runtime.HookRow) (code, reason string) {
	var most phases.Cause
	for _, cause := range phases.FailureCauses() {
		if cause != phases.CauseBreakerOpen && h.Failures[cause] > h.Failures[most] {
			most = cause
		}
	}
	return string(most), fmt.Sprintf("%d of %d runs failed with %s", h.Failures[most], h.Runs, cmp.Or(most, phases.CauseBreakerOpen))
}

// remedyOf is what may help against a cause; otherwise is for those that say little.
func remedyOf(code, otherwise string) string {
	switch phases.Cause(code) {
	case phases.CauseTimeout:
		return "compare its p99 with its timeout: raise timeout of its subscription, or find what it waits for"
	case phases.CauseBudgetExhausted:
		return "others have used the time: see spent_by in grapnel dispatch --json, and budgets.phases"
	case phases.CauseOverloaded:
		return "raise limits.concurrency of the plugin, or have it asked less often (cache, when)"
	case phases.CauseOOM:
		return "raise limits.memory of the plugin, or find what it keeps"
	case phases.CausePluginError:
		return "what it said is in the log; grapnel plugin run tries it alone"
	case phases.CauseInvalidReply:
		return "it breaks the contract of plugins: tell its author; grapnel plugin run shows its answer"
	case phases.CauseOversizeRequest, phases.CauseOversizeReply:
		return "raise limits.frame of the plugin, or have it see or say less"
	case phases.CauseForbidden:
		return "it lacks a grant: grapnel config check says which"
	case phases.CauseConflict:
		return "another hook holds the same slot: give one a higher priority or another id (grapnel plan)"
	case phases.CauseCondition:
		return "its when cannot be evaluated: mend it in the configuration"
	default:
		return startRemedy(code, otherwise)
	}
}

// startRemedy is the same for causes of starts.
func startRemedy(code, otherwise string) string {
	switch phases.Cause(code) {
	case phases.CauseVersionMismatch:
		return "install a version of the plugin that speaks this protocol"
	case phases.CauseChecksumMismatch:
		return "its program is another one than was pinned: if that was you, grapnel plugin pin --write"
	case phases.CauseUnsafePath:
		return "others may write its program or a folder above it: chmod, or unsafe_path in the configuration"
	case phases.CauseDescriptionChanged:
		return "its hooks are other ones than at its first start: grapnel config reload accepts them"
	case phases.CauseStartTimeout:
		return "raise limits.start of the plugin, or find what it waits for"
	case phases.CauseStartNoise:
		return "it writes to standard output before the handshake: have it log to standard error"
	case phases.CauseExecFailed:
		return "see that its command is there, for this system, and may be executed"
	default:
		return otherwise
	}
}

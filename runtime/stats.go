package runtime

// Stats are what an engine has counted since it began. What could not be kept is
// never lost without being counted.
type Stats struct {
	// ManifestsKept are those that the sink has taken.
	ManifestsKept uint64 `json:"manifests_kept"`
	// ManifestsNotKept are those that it has not taken in time, or not at all.
	ManifestsNotKept uint64 `json:"manifests_not_kept"`
	// ManifestsKeptLate are those among ManifestsNotKept that it has taken after
	// all, when their turns had gone on.
	ManifestsKeptLate uint64 `json:"manifests_kept_late"`
	// UsageKept and UsageNotKept are the reports of providers that the sink has
	// taken, and has not taken.
	UsageKept    uint64 `json:"usage_kept"`
	UsageNotKept uint64 `json:"usage_not_kept"`
	// AuditsKept are the audits in no manifest that the sink has taken, AuditsNotKept
	// all audits that were lost.
	AuditsKept    uint64 `json:"audits_kept"`
	AuditsNotKept uint64 `json:"audits_not_kept"`
	// SinkHanging is how many calls of the sink were given up and have not
	// returned.
	SinkHanging int `json:"sink_hanging"`
	// ModelHanging is how many calls of Options.Complete were given up and have not
	// returned.
	ModelHanging int `json:"model_hanging"`
}

// Stats returns the counters as they are. It may be called at any time, also
// after Close.
func (e *Engine) Stats() Stats {
	var st Stats
	if m := e.model; m != nil {
		st.ModelHanging = int(m.hanging.Load())
	}
	if k := e.keeper; k != nil {
		st.ManifestsKept, st.ManifestsNotKept, st.ManifestsKeptLate = k.counts.kept.Load(), k.counts.notKept.Load(), k.counts.keptLate.Load()
		st.AuditsKept, st.AuditsNotKept = k.counts.audits.Load(), k.counts.auditsLost.Load()
		st.UsageKept, st.UsageNotKept, st.SinkHanging = k.counts.usage.Load(), k.counts.usageLost.Load(), int(k.hanging.Load())
	}
	return st
}

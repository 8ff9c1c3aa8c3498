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
	// SinkHanging is how many calls of the sink were given up and have not
	// returned.
	SinkHanging int `json:"sink_hanging"`
}

// Stats returns the counters as they are. It may be called at any time, also
// after Close.
func (e *Engine) Stats() Stats {
	k := e.keeper
	if k == nil {
		return Stats{}
	}
	return Stats{
		ManifestsKept: k.counts.kept.Load(), ManifestsNotKept: k.counts.notKept.Load(), ManifestsKeptLate: k.counts.keptLate.Load(),
		UsageKept: k.counts.usage.Load(), UsageNotKept: k.counts.usageLost.Load(), SinkHanging: int(k.hanging.Load()),
	}
}

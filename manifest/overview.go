package manifest

import (
	"encoding/json"
	"fmt"

	"github.com/grapnelhq/grapnel/phases"
)

// Overview is a row of a list of records: the index, and what counts of the record.
type Overview struct {
	Index

	// Tokens are those of the prompt's sections and tools; null without a tokenizer. Chars are those of its sections.
	Tokens *int `json:"tokens"`
	Chars  int  `json:"chars"`
	// Predicted is how many tokens were expected from the provider's cache, Actual how many came from it as the provider
	// reported; null if that is unknown.
	Predicted *int `json:"cache_predicted"`
	Actual    *int `json:"cache_actual"`
	// Input is how many tokens the provider counted, of which Actual is a part; null if that is unknown.
	Input *int `json:"input_tokens"`
	// Blocked says that the turn was blocked, Denied that a hook denied something.
	Blocked bool `json:"blocked"`
	Denied  bool `json:"denied"`
	// FailedRuns counts hooks that failed, timed out or were unavailable, Omitted what did not reach the prompt,
	// CutSections the sections that a limit cut, and Diagnostics those that are warnings or errors.
	FailedRuns  int `json:"failed_runs"`
	Omitted     int `json:"omitted"`
	CutSections int `json:"cut_sections"`
	Diagnostics int `json:"diagnostics"`
}

// overviewRecord is the part of a record that an overview needs.
type overviewRecord struct {
	Kind     RecordKind `json:"kind"`
	Blocked  bool       `json:"blocked"`
	Sections []struct {
		Chars      int       `json:"chars"`
		Tokens     *int      `json:"tokens"`
		Truncation *struct{} `json:"truncation"`
	} `json:"sections"`
	Omitted []struct{} `json:"omitted"`
	Runs    []struct {
		State phases.RunState `json:"state"`
	} `json:"runs"`
	Diagnostics []struct {
		Severity phases.Severity `json:"severity"`
	} `json:"diagnostics"`
	Cache struct {
		ToolTokens int  `json:"tool_tokens"`
		Predicted  *int `json:"predicted"`
	} `json:"cache"`
}

// ReadOverview returns the overview of a record out of its JSON, with what the provider reported, if anything. It does
// not verify the record.
func ReadOverview(x Index, data []byte, u *Usage) (Overview, error) {
	var r overviewRecord
	if err := json.Unmarshal(data, &r); err != nil {
		return Overview{}, fmt.Errorf("the manifest %s: %w", x.ManifestID, err)
	}
	o := Overview{Index: x, Predicted: r.Cache.Predicted, Blocked: r.Blocked, Omitted: len(r.Omitted)}
	if o.Kind = r.Kind; len(r.Sections) == 0 {
		o.FingerprintFull = ""
	}
	if u != nil {
		o.Actual, o.Input = &u.CacheReadTokens, &u.InputTokens
	}
	o.addSections(&r)
	o.addRuns(&r)
	for _, d := range r.Diagnostics {
		if d.Severity == phases.SeverityWarning || d.Severity == phases.SeverityError {
			o.Diagnostics++
		}
	}
	return o, nil
}

func (o *Overview) addSections(r *overviewRecord) {
	tokens, counted := r.Cache.ToolTokens, r.Cache.ToolTokens > 0
	for _, s := range r.Sections {
		o.Chars += s.Chars
		if s.Tokens != nil {
			tokens, counted = tokens+*s.Tokens, true
		}
		if s.Truncation != nil {
			o.CutSections++
		}
	}
	if counted {
		o.Tokens = &tokens
	}
}

func (o *Overview) addRuns(r *overviewRecord) {
	for _, run := range r.Runs {
		switch run.State {
		case phases.StateFailed, phases.StateTimedOut, phases.StateUnavailable:
			o.FailedRuns++
		case phases.StateDenied:
			o.Denied = true
		}
	}
}

package replay

import (
	"context"
	"slices"
	"time"

	"github.com/grapnelhq/grapnel/runtime"
)

// Engine is what a part is played on; a *runtime.Engine is one.
type Engine interface {
	Repeat(ctx context.Context, x *runtime.Exchange) (*runtime.Exchange, error)
}

var _ Engine = (*runtime.Engine)(nil)

// Outcome is how an answer compares with the recorded one.
type Outcome string

// The outcomes.
const (
	// Same is the same answer, or the same failure.
	Same Outcome = "same"
	// Differs is another answer, an answer in place of a failure, or another failure.
	Differs Outcome = "differs"
	// Failed is a failure in place of an answer.
	Failed Outcome = "failed"
	// Skipped was sent, and has nothing to be compared with.
	Skipped Outcome = "skipped"
)

// Outcomes lists the outcomes.
func Outcomes() []Outcome { return []Outcome{Same, Differs, Failed, Skipped} }

// Run is one call that was played.
type Run struct {
	Run          int     `json:"run"          jsonschema:"counts from 1"`
	Line         int     `json:"line"         jsonschema:"the line of the record"`
	Plugin       string  `json:"plugin"`
	Subscription string  `json:"subscription" jsonschema:"the hook's full id, or PLUGIN.TOOL"`
	Outcome      Outcome `json:"outcome"`
	Recorded     Answer  `json:"recorded"     jsonschema:"what was recorded"`
	Now          Answer  `json:"now"          jsonschema:"what came now"`
	// Differences are bounded by maxDifferences.
	Differences []Difference `json:"differences" jsonschema:"where the answers differ; the first of them"`
	Unrecorded  []string     `json:"unrecorded"  jsonschema:"host calls that the record has no answer to; they were answered unavailable"`
}

// Answer is the short form of an answer.
type Answer struct {
	MS         float64  `json:"ms"`
	Code       string   `json:"code"        jsonschema:"why there is no answer; empty if there is one"`
	PluginCode string   `json:"plugin_code"`
	Message    string   `json:"message"     jsonschema:"the failure in words; not compared"`
	Hashes     []string `json:"hashes"      jsonschema:"fingerprints of the contributions, or of a tool's content"`
}

// Play sends the part's calls to the engine, one after another, and tells each run,
// numbered from first. It ends early with an error only if the engine cannot play at
// all, or ctx ends.
func (p *Part) Play(ctx context.Context, eng Engine, first int, tell func(*Run)) error {
	for i := range p.calls {
		c := &p.calls[i]
		p.Host.begin(c.asked)
		now, err := eng.Repeat(ctx, c.exchange)
		unrecorded := p.Host.end()
		if err != nil {
			return err
		}
		run := compare(c.exchange, now)
		run.Run, run.Line, run.Unrecorded = first+i, c.line, append([]string{}, unrecorded...)
		tell(run)
	}
	return nil
}

// Times are quantiles of what calls took, in milliseconds.
type Times struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// TimesOf returns the quantiles of some times by nearest rank; zero for none.
func TimesOf(ms []float64) Times {
	if len(ms) == 0 {
		return Times{}
	}
	sorted := slices.Sorted(slices.Values(ms))
	at := func(percent int) float64 { return sorted[max(0, (len(sorted)*percent+99)/100-1)] }
	return Times{at(50), at(99)}
}

// millis is a duration in milliseconds, to the microsecond.
func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

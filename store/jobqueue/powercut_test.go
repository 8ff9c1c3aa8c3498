package jobqueue_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/internal/storetest"
	"github.com/grapnelhq/grapnel/store/jobqueue"
)

// TestPowerCut cuts the power while a program adds jobs and works on them. Each job
// that was taken is there or done, what must not be repeated and has begun is known to
// have begun, and what was done is done.
func TestPowerCut(t *testing.T) {
	storetest.SkipShort(t)
	t.Parallel()

	count := "15"
	if storetest.Long() {
		count = "60"
	}
	storetest.Record(t, "drain", count).Cuts(t, func(t *testing.T, dsn string, printed []string) {
		open(t, dsn, jobqueue.Options{})
		var sound string
		if err := storetest.Raw(t, dsn).QueryRowContext(t.Context(), "PRAGMA integrity_check").Scan(&sound); err != nil || sound != "ok" {
			t.Errorf("integrity: %s, %v", sound, err)
		}
		open, completed := keptJobs(t, dsn)
		taken := 0
		for _, line := range printed {
			what, name, _ := strings.Cut(line, " ")
			begun, isOpen := open[name]
			switch {
			case what == "added" && !isOpen:
				taken++
			case what == "begun" && isOpen && !begun:
				t.Errorf("%s has begun, and nobody knows", name)
			case what == "drained" && len(open) > 0:
				t.Errorf("all was done, and now there are %v", open)
			}
		}
		if taken > completed {
			t.Errorf("%d jobs were taken and are not waiting, %d are completed", taken, completed)
		}
	})
}

// keptJobs are the jobs in a database: those that are not completed by their names,
// with whether they have begun, and how many are.
func keptJobs(t *testing.T, dsn string) (open map[string]bool, completed int) {
	t.Helper()
	rows, err := storetest.Raw(t, dsn).QueryContext(t.Context(), "SELECT job, begun, state FROM jobs")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	open = map[string]bool{}
	for rows.Next() {
		var job, state string
		var begun int
		if err := rows.Scan(&job, &begun, &state); err != nil {
			t.Fatal(err)
		}
		if state == "done" { // what it was is not kept
			completed++
			continue
		}
		var body struct {
			Payload string `json:"payload"`
		}
		if err := json.Unmarshal([]byte(job), &body); err != nil {
			t.Fatal(err)
		}
		open[body.Payload] = begun > 0
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return open, completed
}

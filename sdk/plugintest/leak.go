package plugintest

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"time"
)

// label marks the goroutines of one run in the runtime's profile; goroutines
// inherit the labels of the one that starts them. So the kit tells its own from
// those of tests that run at the same time.
const label = "plugintest"

// watch runs f and reports the goroutines that f started and that still run
// some time after it.
func watch(t TB, patience time.Duration, f func()) {
	t.Helper()
	// The address of a local value is this run's own.
	var mark byte
	id := fmt.Sprintf("%p", &mark)
	defer runtime.KeepAlive(&mark)
	pprof.Do(t.Context(), pprof.Labels(label, id), func(context.Context) { f() })

	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for {
		left := labelled(id)
		if left == "" {
			return
		}
		select {
		case <-again.C:
		case <-deadline.C:
			t.Errorf("goroutines of the plugin are left:\n%s", left)
			return
		}
	}
}

// labelled returns the goroutines of a run, as the profile prints them.
func labelled(id string) string {
	var out bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&out, 1); err != nil {
		return "" // a buffer takes everything
	}
	var left []string
	for record := range strings.SplitSeq(out.String(), "\n\n") {
		if strings.Contains(record, strconv.Quote(label)+":"+strconv.Quote(id)) {
			left = append(left, record)
		}
	}
	return strings.Join(left, "\n\n")
}

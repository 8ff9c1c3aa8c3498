package gateway

import (
	"strings"
	"testing"
)

// TestQueueMetrics: the queue's figures are there, unless the database is away: then
// there are none, and status says why.
func TestQueueMetrics(t *testing.T) {
	t.Parallel()

	want := []string{
		`grapnel_queue_jobs{state="waiting"} 3`, `grapnel_queue_jobs{state="scheduled"} 2`, `grapnel_queue_jobs{state="running"} 4`,
		`grapnel_queue_jobs{state="dead"} 1`, `grapnel_queue_oldest_seconds 1.5`,
	}
	_, body := serve(t, Options{Engine: &fakeEngine{}}).get(t, "/metrics", "")
	for _, line := range want {
		if !strings.Contains(body, "\n"+line+"\n") {
			t.Errorf("no line %q", line)
		}
	}
	_, body = serve(t, Options{Engine: &fakeEngine{queueErr: "the database is away"}}).get(t, "/metrics", "")
	if strings.Contains(body, "grapnel_queue_") || !strings.Contains(body, "grapnel_model_hanging") {
		t.Errorf("without a database:\n%s", body)
	}
}

package providerstest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/providers"
	"github.com/grapnelhq/grapnel/providers/internal/providerstest"
)

// TestSample: adapters are only tested if the sample has what it promises.
func TestSample(t *testing.T) {
	t.Parallel()

	r := providerstest.Sample(t, "m")
	var plan []string
	for _, b := range r.Prompt.CachePlan.Breakpoints {
		plan = append(plan, string(b.After)+" "+b.SectionID)
	}
	if got, want := strings.Join(plan, ", "), string(manifest.AfterTools)+" , stable safety, dynamic agents_md"; got != want {
		t.Errorf("plan = %s, want %s", got, want)
	}
	if len(r.Prompt.SystemMessages) != 1 || len(r.Prompt.UserMessages) != 1 {
		t.Errorf("messages = %v, %v", r.Prompt.SystemMessages, r.Prompt.UserMessages)
	}
}

// TestRun runs the checks on the simplest adapter there is.
func TestRun(t *testing.T) {
	t.Parallel()

	providerstest.Run(t, func(r providers.Request) ([]byte, error) {
		l, err := providers.Lay(r, providers.Rules{})
		if err != nil {
			return nil, err
		}
		var tools []string
		for _, tool := range l.Tools {
			tools = append(tools, tool.Text)
		}
		return json.Marshal(map[string]any{"tools": tools, "system": l.SystemText(), "more": l.SystemMessages, "messages": l.Messages, "tail": l.Tail})
	})
}

func TestServe(t *testing.T) {
	t.Parallel()

	s := providerstest.Serve(t, []byte(`{}`))
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/path", strings.NewReader("body"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if sent := s.Only(t); sent.Path != "/path" || string(sent.Body) != "body" || sent.Method != http.MethodPost {
		t.Errorf("sent = %+v", sent)
	}
}

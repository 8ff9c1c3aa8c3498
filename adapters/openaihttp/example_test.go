package openaihttp_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/grapnelhq/grapnel/adapters/openaihttp"
	"github.com/grapnelhq/grapnel/config"
	"github.com/grapnelhq/grapnel/internal/tests/looptest"
	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/runtime"
	"github.com/grapnelhq/grapnel/sdk"
)

// A plugin adds a section to what any client of the API asks.
func Example() {
	ctx := context.Background()
	house := &sdk.Plugin{Name: "house", Version: "1.0.0", Hooks: []sdk.Hook{{
		Name: "rules", Kinds: []phases.Kind{phases.KindPromptSection},
		PrePromptCompile: func(context.Context, *sdk.Call, *phases.PrePromptCompileInput) ([]phases.Contribution, error) {
			return sdk.Reply(&phases.PromptSection{SectionID: "rules", Title: "Rules", Content: "Be brief."})
		},
	}}}
	cfg := &config.Config{Version: 1, Plugins: []config.Plugin{{Name: "house", Grants: phases.Grants{Contribute: []string{"*"}, Sections: []string{"rules"}}}}}
	kept := &looptest.Sink{}
	eng, err := runtime.New(ctx, cfg, runtime.Options{InProcess: map[string]runtime.Plugin{"house": house}, Sink: kept})
	if err != nil {
		panic(err)
	}
	defer func() { _ = eng.Close(ctx) }()

	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // in place of a vendor's
		body, _ := io.ReadAll(r.Body)
		fmt.Println("the API sees the rules:", strings.Contains(string(body), `## Rules\n\nBe brief.`))
		_, _ = io.WriteString(w, `{"choices":[{"index":0,"message":{"role":"assistant","content":"Hi."},"finish_reason":"stop"}],"usage":{"prompt_tokens":90,"completion_tokens":2}}`)
	}))
	defer api.Close()
	upstream, _ := url.Parse(api.URL)
	proxy, err := openaihttp.New(openaihttp.Options{Engine: eng, Upstream: upstream})
	if err != nil {
		panic(err)
	}
	defer proxy.Close(ctx)

	request := `{"model":"m","messages":[{"role":"system","content":"You are a poet."},{"role":"user","content":"Hello!"}]}`
	w := httptest.NewRecorder()
	proxy.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/v1/chat/completions", strings.NewReader(request)))
	fmt.Println(w.Code, strings.Contains(w.Body.String(), "Hi."))
	for _, s := range kept.Prompts()[0].Sections {
		fmt.Println(s.SectionID, "from", s.Owner)
	}
	fmt.Println(kept.Usage()[0].InputTokens, "tokens")
	// Output:
	// the API sees the rules: true
	// 200 true
	// identity from builtin
	// safety from builtin
	// client_instructions from host
	// rules from house
	// extra_system from builtin
	// 90 tokens
}

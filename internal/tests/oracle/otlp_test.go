package oracle

import (
	"bytes"
	"strings"
	"testing"
	"time"

	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/grapnelhq/grapnel/internal/cli/logexport"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// What logexport writes as OTLP/JSON is what the types of OpenTelemetry read, without a field that they do not know.
func TestOTLPIsLogsData(t *testing.T) {
	t.Parallel()
	m := manifest.New()
	m.ManifestID, m.CompilerVersion, m.WorkspaceID, m.ThreadID, m.TurnID = "01JZ"+strings.Repeat("0", 22), "1", "w", "t", "u"
	m.CreatedAt, m.Build, m.AgentID = time.Date(2026, 2, 3, 4, 5, 6, 7, time.UTC), "v1", "scout"
	m.Cache.Provider, m.Cache.Model = "gemini", "gemini-3-pro"
	m.Fingerprints = manifest.EmptyFingerprints(nil)
	r, err := manifest.SealRecord(nil, &m, &manifest.Link{Seq: 6, Hash: "sha256:" + strings.Repeat("0", 64)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	w, err := logexport.New(logexport.OTLP, &out, logexport.Options{Usage: func(string) ([]manifest.Usage, error) {
		return []manifest.Usage{{Usage: phases.Usage{InputTokens: 100, OutputTokens: 20, CacheReadTokens: 60, CacheWriteTokens: 5}}}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(r); err != nil {
		t.Fatal(err)
	}
	var data logs.LogsData
	if err := protojson.Unmarshal(out.Bytes(), &data); err != nil {
		t.Fatalf("%v\n%s", err, out.Bytes())
	}
	scope := data.GetResourceLogs()[0].GetScopeLogs()[0]
	record := scope.GetLogRecords()[0]
	if record.GetTimeUnixNano() != uint64(m.CreatedAt.UnixNano()) || record.GetObservedTimeUnixNano() != record.GetTimeUnixNano() ||
		record.GetSeverityNumber() != logs.SeverityNumber_SEVERITY_NUMBER_INFO || record.GetEventName() != "grapnel.prompt" ||
		record.GetBody().GetStringValue() != string(r.Data) || scope.GetScope().GetVersion() != "1" {
		t.Errorf("the record is %v", record)
	}
	got := map[string]any{}
	for _, kv := range append(record.GetAttributes(), data.GetResourceLogs()[0].GetResource().GetAttributes()...) {
		got[kv.GetKey()] = kv.GetValue().GetStringValue()
		if got[kv.GetKey()] == "" {
			got[kv.GetKey()] = kv.GetValue().GetIntValue()
		}
	}
	for key, want := range map[string]any{
		"service.name": "grapnel", "service.version": "v1", "grapnel.manifest.id": m.ManifestID, "grapnel.manifest.hash": r.Index.Hash,
		"gen_ai.conversation.id": "t", "gen_ai.agent.id": "scout", "gen_ai.provider.name": "gcp.gemini", "gen_ai.request.model": "gemini-3-pro",
		"gen_ai.usage.input_tokens": int64(100), "gen_ai.usage.output_tokens": int64(20), "gen_ai.usage.cache_read.input_tokens": int64(60),
		"gen_ai.usage.cache_creation.input_tokens": int64(5), "grapnel.manifest.seq": int64(7), "grapnel.round": int64(0),
	} {
		if got[key] != want {
			t.Errorf("%s is %v, want %v", key, got[key], want)
		}
	}
}

package logexport

import (
	"slices"
	"strconv"

	"github.com/grapnelhq/grapnel/manifest"
)

// The types are those of OTLP/JSON (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding): whole numbers of
// 64 bits are strings, and enumerations are numbers.
type (
	logsData struct {
		ResourceLogs []resourceLogs `json:"resourceLogs"`
	}
	resourceLogs struct {
		Resource  resource    `json:"resource"`
		ScopeLogs []scopeLogs `json:"scopeLogs"`
	}
	resource struct {
		Attributes []keyValue `json:"attributes"`
	}
	scopeLogs struct {
		Scope      scope       `json:"scope"`
		LogRecords []logRecord `json:"logRecords"`
	}
	scope struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	logRecord struct {
		TimeUnixNano         string     `json:"timeUnixNano"`
		ObservedTimeUnixNano string     `json:"observedTimeUnixNano"`
		SeverityNumber       int        `json:"severityNumber"`
		EventName            string     `json:"eventName"`
		Body                 value      `json:"body"`
		Attributes           []keyValue `json:"attributes"`
	}
	keyValue struct {
		Key   string `json:"key"`
		Value value  `json:"value"`
	}
	value struct {
		String *string `json:"stringValue,omitempty"`
		Int    *string `json:"intValue,omitempty"`
	}
)

const severityInfo = 9

// logData is a record as log data: the body is its canonical JSON.
func (o *Options) logData(r manifest.Record) ([]byte, error) {
	m, err := manifest.Parse(r.Data)
	if err != nil {
		return nil, err
	}
	usage, err := o.Usage(m.ManifestID)
	if err != nil {
		return nil, err
	}
	at, body := strconv.FormatInt(m.CreatedAt.UnixNano(), 10), string(r.Data)
	return encode(logsData{[]resourceLogs{{
		Resource: resource{texts("service.name", "grapnel", "service.version", m.Build)},
		ScopeLogs: []scopeLogs{{
			Scope: scope{"github.com/grapnelhq/grapnel/manifest", strconv.Itoa(m.SchemaVersion)},
			LogRecords: []logRecord{{
				TimeUnixNano: at, ObservedTimeUnixNano: at, SeverityNumber: severityInfo,
				EventName: "grapnel." + string(m.Kind), Body: value{String: &body}, Attributes: attributesOf(&m, usage),
			}},
		}},
	}}})
}

// attributesOf has the names that package telemetry gives to spans, so that both can be joined. Those that begin with
// gen_ai. are of https://github.com/open-telemetry/semantic-conventions-genai.
func attributesOf(m *manifest.Manifest, usage []manifest.Usage) []keyValue {
	list := texts(
		"grapnel.manifest.id", m.ManifestID, "grapnel.manifest.hash", m.Hash,
		"grapnel.workspace.id", m.WorkspaceID, "grapnel.turn.id", m.TurnID, "grapnel.actor", m.Actor, "session.id", m.SessionID,
		"gen_ai.conversation.id", m.ThreadID, "gen_ai.agent.id", m.AgentID,
		"gen_ai.provider.name", m.Cache.GenAIProvider(), "gen_ai.request.model", m.Cache.Model,
	)
	list = append(list, number("grapnel.manifest.seq", int64(m.Seq)), number("grapnel.round", int64(m.Round))) //nolint:gosec // counted one by one
	if len(usage) == 0 {
		return list
	}
	u := &usage[len(usage)-1]
	return append(list,
		number("gen_ai.usage.input_tokens", int64(u.InputTokens)), number("gen_ai.usage.output_tokens", int64(u.OutputTokens)),
		number("gen_ai.usage.cache_read.input_tokens", int64(u.CacheReadTokens)),
		number("gen_ai.usage.cache_creation.input_tokens", int64(u.CacheWriteTokens)),
	)
}

// texts makes attributes of keys and values in turn, without those that are empty.
func texts(pairs ...string) []keyValue {
	list := make([]keyValue, 0, len(pairs)/2)
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			list = append(list, keyValue{pair[0], value{String: &pair[1]}})
		}
	}
	return list
}

func number(key string, n int64) keyValue {
	text := strconv.FormatInt(n, 10)
	return keyValue{key, value{Int: &text}}
}

package logexport

import (
	"slices"
	"strconv"

	"github.com/grapnelhq/grapnel/manifest"
)

// object and list are JSON as OTLP has it (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding): whole numbers
// of 64 bits are strings, and enumerations are numbers.
type (
	object = map[string]any
	list   = []any
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
	at := strconv.FormatInt(m.CreatedAt.UnixNano(), 10)
	return encode(object{"resourceLogs": list{object{
		"resource": object{"attributes": texts("service.name", "grapnel", "service.version", m.Build)},
		"scopeLogs": list{object{
			"scope": object{"name": "github.com/grapnelhq/grapnel/manifest", "version": strconv.Itoa(m.SchemaVersion)},
			"logRecords": list{object{
				"timeUnixNano": at, "observedTimeUnixNano": at, "severityNumber": severityInfo, "eventName": "grapnel." + string(m.Kind),
				"body": object{"stringValue": string(r.Data)}, "attributes": attributesOf(&m, usage),
			}},
		}},
	}}})
}

// attributesOf has the names that package telemetry gives to spans, so that both can be joined. Those that begin with
// gen_ai. are of https://github.com/open-telemetry/semantic-conventions-genai.
func attributesOf(m *manifest.Manifest, usage []manifest.Usage) list {
	all := texts(
		"grapnel.manifest.id", m.ManifestID, "grapnel.manifest.hash", m.Hash,
		"grapnel.workspace.id", m.WorkspaceID, "grapnel.turn.id", m.TurnID, "grapnel.actor", m.Actor, "session.id", m.SessionID,
		"gen_ai.conversation.id", m.ThreadID, "gen_ai.agent.id", m.AgentID,
		"gen_ai.provider.name", m.Cache.GenAIProvider(), "gen_ai.request.model", m.Cache.Model,
	)
	all = append(all, number("grapnel.manifest.seq", int64(m.Seq)), number("grapnel.round", int64(m.Round))) //nolint:gosec // counted one by one
	if len(usage) == 0 {
		return all
	}
	u := &usage[len(usage)-1]
	return append(all,
		number("gen_ai.usage.input_tokens", int64(u.InputTokens)), number("gen_ai.usage.output_tokens", int64(u.OutputTokens)),
		number("gen_ai.usage.cache_read.input_tokens", int64(u.CacheReadTokens)),
		number("gen_ai.usage.cache_creation.input_tokens", int64(u.CacheWriteTokens)),
	)
}

// texts makes attributes of keys and values in turn, without those that are empty.
func texts(pairs ...string) list {
	all := list{}
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			all = append(all, object{"key": pair[0], "value": object{"stringValue": pair[1]}})
		}
	}
	return all
}

func number(key string, n int64) object {
	return object{"key": key, "value": object{"intValue": strconv.FormatInt(n, 10)}}
}

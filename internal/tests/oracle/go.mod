module github.com/grapnelhq/grapnel/internal/tests/oracle

go 1.26.0

require (
	github.com/creachadair/jrpc2 v1.3.6
	github.com/grapnelhq/grapnel v0.0.0
)

replace github.com/grapnelhq/grapnel => ../../..

require (
	github.com/coder/websocket v1.8.15
	github.com/google/go-cmp v0.7.0
	github.com/gowebpki/jcs v1.0.2
	go.opentelemetry.io/proto/otlp v1.11.1
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/creachadair/mds v0.31.0 // indirect
	github.com/go-json-experiment/json v1.27.2 // indirect
	github.com/google/jsonschema-go v0.4.3 // indirect
	golang.org/x/sync v0.24.0 // indirect
	golang.org/x/time v0.16.0 // indirect
)

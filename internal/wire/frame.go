package wire

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
)

// body is the number of a frame's body in HostFrame or PluginFrame.
type body = protowire.Number

// The bodies of HostFrame.
const (
	hostHello       body = 3
	hostConfigure   body = 4
	hostDispatch    body = 5
	hostCancel      body = 6
	hostCallTool    body = 7
	hostReplied     body = 8
	hostPing        body = 9
	hostDrain       body = 10
	hostUnsupported body = 11
)

// The bodies of PluginFrame.
const (
	pluginDescribe    body = 3
	pluginConfigured  body = 4
	pluginResult      body = 5
	pluginToolResult  body = 6
	pluginHostCall    body = 7
	pluginInvalidate  body = 8
	pluginPong        body = 9
	pluginUnsupported body = 10
)

// envelope is a frame that was read no further than its body's beginning. The
// reader of a session does that much and hands the rest to whoever waits, so
// that decoding runs in many goroutines and a bad body fails one call only.
type envelope struct {
	id          uint64
	incarnation uint64
	// body is 0 if the frame has none with a known number.
	body    body
	payload []byte
	// stranger is then the number of a field that may be a body of a later
	// version.
	stranger body
}

var errFrame = errors.New("the frame is not a protobuf message")

// parseEnvelope reads the envelope of a frame whose bodies are numbered up to
// last. On an error the fields that came before the mistake are set.
func parseEnvelope(data []byte, last body) (envelope, error) {
	var e envelope
	for len(data) > 0 {
		num, typ, n := protowire.ConsumeTag(data)
		if n < 0 {
			return e, errFrame
		}
		data = data[n:]
		switch {
		case num <= 2 && typ == protowire.VarintType:
			v, size := protowire.ConsumeVarint(data)
			if n = size; num == 1 {
				e.id = v
			} else {
				e.incarnation = v
			}
		case num > 2 && num <= last && typ == protowire.BytesType:
			e.payload, n = protowire.ConsumeBytes(data)
			e.body = num
		default:
			e.stranger = num
			n = protowire.ConsumeFieldValue(num, typ, data)
		}
		if n < 0 {
			return e, errFrame
		}
		data = data[n:]
	}
	return e, nil
}

// putFrame writes a whole frame.
func putFrame[T any](f *form, id, incarnation uint64, b body, m *T, fields func(*form, *T)) {
	number(f, 1, &id)
	number(f, 2, &incarnation)
	put(f, b, m, fields)
}

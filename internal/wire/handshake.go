package wire

// What go-plugin's handshake needs on both sides. The values are part of the
// wire contract: plugins in other languages print and check them too.
const (
	// CoreVersion is the version of go-plugin's handshake line.
	CoreVersion = 1
	// ProtocolVersion is the version of the contract: the second number of the
	// handshake line, and the number in Hello. It only changes with the proto
	// package's major version.
	ProtocolVersion = 1
	// Transport is the transport of the handshake line.
	Transport = "grpc"
	// HandshakeCookieKey and HandshakeCookieValue are the environment variable
	// that tells a program it was started as a plugin.
	HandshakeCookieKey   = "GRAPNEL_PLUGIN"
	HandshakeCookieValue = "2f6a0c1e9d4b4b7c8f0e5a73d1c96b28"
	// PluginName is the one name in go-plugin's plugin set.
	PluginName = "grapnel"
)

// Bounds of a frame: one gRPC message, in bytes.
const (
	// DefaultFrame is the limit where the operator set none.
	DefaultFrame = 4 << 20
	// MaxFrame is the largest limit that an operator may set.
	MaxFrame = 16 << 20
)

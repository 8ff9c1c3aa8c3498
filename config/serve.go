package config

import (
	"net/url"
	"path/filepath"
	"strings"

	"github.com/grapnelhq/grapnel/phases"
)

// Serve says what the gateway lets its clients do. The zero value lets them name
// no folder, and takes requests to loopback only.
type Serve struct {
	// Roots are absolute paths of folders: the working folder of a turn that a
	// client compiles lies in one of them.
	Roots []string `json:"roots,omitempty"`
	// Hosts are the names, without ports, under which the gateway may be reached
	// beside those of loopback.
	Hosts []string `json:"hosts,omitempty"`
	// Origins are those of web pages that may call the gateway beside its own:
	// "https://HOST", with a port where it is not the scheme's own.
	Origins []string `json:"origins,omitempty"`
	// TurnIdle is how long a turn that a client has begun is kept without a call;
	// Turns is how many are kept at most. Zero is the gateway's default.
	TurnIdle phases.Duration `json:"turn_idle,omitempty"`
	Turns    int             `json:"turns,omitempty"`
	// Watch has the gateway reload the configuration and the token file when they
	// change.
	Watch bool `json:"watch,omitempty"`
}

// maxTurns is how many turns may be kept at most: each holds what its phases brought.
const maxTurns = 100_000

// serveRules has the keys of the gateway's part.
func serveRules() map[string]rule {
	return map[string]rule{
		"Serve.turn_idle": atLeast(1, "How long a turn that a client has begun is kept without a call; 10m by default."),
		"Serve.turns":     between(1, maxTurns, "How many such turns are kept; 1,024 by default. A token may have half of them."),

		"Serve.roots":   about("Absolute paths of the folders in which a client's turn may work; none by default."),
		"Serve.hosts":   about("Names, without ports, under which the gateway is reached beside loopback."),
		"Serve.origins": about("Origins of web pages that may call the gateway beside its own, such as https://example.org."),
		"Serve.watch":   about("Reloads the configuration and the token file when they change; false by default."),
	}
}

// serve checks the gateway's part.
func (c *checker) serve(n *node) {
	s := &c.config.Serve
	for i, root := range s.Roots {
		if root != "" && !filepath.IsAbs(root) {
			c.badf(n.child("roots").item(i), "%.80q is no absolute path", root)
		}
	}
	for i, host := range s.Hosts {
		if host == "" || strings.ContainsAny(host, "/:@ ") {
			c.badf(n.child("hosts").item(i), "%.80q is no name of a host; write it without scheme and port", host)
		}
	}
	for i, origin := range s.Origins {
		if !validOrigin(origin) {
			c.badf(n.child("origins").item(i), "%.80q is no origin; write scheme and host, such as https://example.org", origin)
		}
	}
}

// validOrigin reports whether a text is what browsers send as Origin.
func validOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.String() == u.Scheme+"://"+u.Host
}

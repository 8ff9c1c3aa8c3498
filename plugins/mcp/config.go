package mcp

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/grapnelhq/grapnel/phases"
	"github.com/grapnelhq/grapnel/plugins/mcp/internal/mcpclient"
	"github.com/grapnelhq/grapnel/sdk"
)

// Words of the configuration.
const (
	withhold = "withhold"
	warn     = "warn"
	remember = "remember"
)

// config is the operator's configuration; schema.json describes each key.
type config struct {
	policy

	Servers map[string]*serverConfig `json:"servers"`
}

// policy says what becomes of definitions that nobody has accepted.
type policy struct {
	Changed string `json:"changed"`
	Unknown string `json:"unknown"`
}

type serverConfig struct {
	Command      []string          `json:"command"`
	Env          map[string]string `json:"env"`
	URL          string            `json:"url"`
	Headers      map[string]string `json:"headers"`
	Tools        []string          `json:"tools"` // nil takes all
	Instructions bool              `json:"instructions"`
	HideAbove    *int              `json:"hide_above"`
	Timeout      phases.Duration   `json:"timeout"`
	MaxResult    int               `json:"max_result_bytes"`
	Accept       map[string]string `json:"accept"`
}

const (
	defaultHideAbove = 20
	defaultTimeout   = 30 * time.Second
	defaultResult    = 256 << 10
)

// parseConfig decodes a configuration that fits the schema, and fills in the defaults. Errors are [*phases.ConfigError].
func parseConfig(data json.RawMessage) (*config, error) {
	c := &config{policy: policy{Changed: withhold, Unknown: remember}}
	if err := sdk.DecodeConfig(data, c); err != nil {
		return nil, err
	}
	for name, s := range c.Servers {
		if err := cmp.Or(s.complete(name), s.normalAccept(name)); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (s *serverConfig) complete(name string) error {
	pointer := "/servers/" + name
	switch {
	case (len(s.Command) == 0) == (s.URL == ""):
		return sdk.ConfigErrorf(pointer, "a server has either a command or a url")
	case s.URL == "" && len(s.Headers) > 0:
		return sdk.ConfigErrorf(pointer+"/headers", "headers go with a url")
	case s.URL != "" && len(s.Env) > 0:
		return sdk.ConfigErrorf(pointer+"/env", "env goes with a command")
	}
	s.HideAbove = cmp.Or(s.HideAbove, new(defaultHideAbove))
	s.Timeout = cmp.Or(s.Timeout, phases.Duration(defaultTimeout))
	s.MaxResult = cmp.Or(s.MaxResult, defaultResult)
	return nil
}

// normalAccept brings the accepted hashes under the normal names of their tools.
func (s *serverConfig) normalAccept(server string) error {
	accept := make(map[string]string, len(s.Accept))
	for own, hash := range s.Accept {
		if before, twice := accept[normal(own)]; twice && before != hash {
			return sdk.ConfigErrorf("/servers/"+server+"/accept", "%q has two hashes: for the model it is the tool %s", own, exposed(server, own))
		}
		accept[normal(own)] = hash
	}
	s.Accept = accept
	return nil
}

func (s *serverConfig) client(name string) mcpclient.Config {
	return mcpclient.Config{
		Name: name, Command: s.Command, Env: s.Env, URL: s.URL, Headers: s.Headers, Timeout: s.Timeout.D(), MaxResult: s.MaxResult,
		Granted: func(tool string) bool { return s.Tools == nil || phases.Allows(s.Tools, tool) },
	}
}

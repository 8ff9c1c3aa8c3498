package config

import "encoding/json"

// Public returns the configuration as JSON in which every secret reads "***", whether or not it came from the
// environment, with the variable that it came from. Equal configurations give equal bytes.
func (c *Config) Public() (json.RawMessage, error) {
	shown := *c
	shown.Store, shown.Manifest.FingerprintKey, shown.Manifest.ChainKey = hide(c.Store), hide(c.Manifest.FingerprintKey), hide(c.Manifest.ChainKey)
	shown.Plugins = make([]Plugin, len(c.Plugins))
	for i, p := range c.Plugins {
		set := make(map[string]Secret, len(p.Env.Set))
		for name, value := range p.Env.Set {
			set[name] = hide(value)
		}
		p.Env.Set = set
		shown.Plugins[i] = p
	}
	return json.Marshal(shown)
}

func hide(s Secret) Secret {
	if s == (Secret{}) {
		return s
	}
	return Secret{Value: redacted + s.FromEnv}
}

package config

import _ "embed" // for template.yaml

//go:embed template.yaml
var template string

// Template returns a commented grapnel.yaml to begin with: it is valid as it is,
// and names every key in a line of its own. The caller may change it.
func Template() []byte { return []byte(template) }

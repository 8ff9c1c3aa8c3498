package config_test

import (
	"encoding/json"
	"fmt"

	"github.com/grapnelhq/grapnel/config"
)

func ExampleParse() {
	_, err := config.Parse([]byte(`version: 1
plugins:
  - name: memory
    builtin: memory
    limits: {start: 10}
    grant: {see: [user_text]}
`), "grapnel.yaml")
	fmt.Println(err)
	// Output:
	// grapnel.yaml:5:21: 10 has no unit; write 10s for seconds or 10ms for milliseconds
	//  |     limits: {start: 10}
	//  |                     ^
	// grapnel.yaml:6:5: unknown key "grant" (did you mean "grants"?)
	//  |     grant: {see: [user_text]}
	//  |     ^
}

func ExampleLoader_Parse() {
	loader := config.Loader{LookupEnv: func(name string) (string, bool) { return "s3cret", name == "API_KEY" }}
	c, err := loader.Parse([]byte(`version: 1
plugins:
  - name: search
    builtin: search
    config: {api_key: "${API_KEY}", results: 5}
`), "grapnel.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("the plugin gets %s\n", c.Plugins[0].Config)
	printed, err := json.Marshal(c.Plugins[0])
	fmt.Println("people see", string(printed), err)
	// Output:
	// the plugin gets {"api_key":"s3cret","results":5}
	// people see {"name":"search","builtin":"search","config":{"api_key":"***","results":5}} <nil>
}

func ExampleConfig_PlanError() {
	c, err := config.Parse([]byte(`version: 1
plugins:
  - name: rules
    builtin: scripted
    subscriptions:
      rules.text: {when: 'turn.mod == "agent"'}
`), "grapnel.yaml")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(c.PlanError("rules", "subscriptions.rules.text.when", `unknown name turn.mod (did you mean "turn.mode"?)`, nil))
	// Output:
	// grapnel.yaml:6:26: unknown name turn.mod (did you mean "turn.mode"?)
	//  |       rules.text: {when: 'turn.mod == "agent"'}
	//  |                          ^
}

func ExampleSchema() {
	var schema struct {
		Title    string   `json:"title"`
		Required []string `json:"required"`
	}
	err := json.Unmarshal(config.Schema(), &schema)
	fmt.Println(schema.Title, schema.Required, err)
	// Output:
	// grapnel.yaml [version] <nil>
}

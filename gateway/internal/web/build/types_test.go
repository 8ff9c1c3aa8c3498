package main

import (
	"strings"
	"testing"
)

// TestNamed: an object in several places is written once, under a name; one that is only in another such object, or
// small, has none. Objects of the same name that differ have different names.
func TestNamed(t *testing.T) {
	t.Parallel()

	const entry = `{"type":"object","properties":{"id":{"type":"string"},"at":{"type":"object","properties":{"x":{"type":"number"},"y":{"type":"number"}}}},"required":["id"]}`
	const schema = `{"methods":{
		"log/list": {"right":"read","result":{"type":"object","properties":{"entries":{"type":"array","items":` + entry + `}}}},
		"log/get": {"result":{"type":["null","object"],"properties":{"entry":` + entry + `}}},
		"log/put": {"params":{"type":"object","properties":{"entry":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}}},
			"result":{"type":"object","properties":{"entry":{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}}}}
	}}`
	got, err := typescript([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"interface Entry {\n  at?: {\n    x?: number;\n    y?: number;\n  };\n  id: string;\n}\n",
		"interface PutParamsEntry {\n  a?: string;\n  b?: string;\n}\n",
		"result: {\n      entries?: Entry[];\n    };",
		"result: null | {\n      entry?: Entry;\n    };",
		"params: {\n      entry?: PutParamsEntry;\n    };",
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("there is no %s in\n%s", want, got)
		}
	}
	if n := strings.Count(string(got), "interface "); n != 4 { // Methods and Notifications too
		t.Errorf("%d interfaces in\n%s", n, got)
	}
}

package tree_test

import (
	"encoding/json"
	"testing"

	"github.com/grapnelhq/grapnel/internal/tree"
)

func TestFolderID(t *testing.T) {
	t.Parallel()

	type holder struct {
		FolderID tree.FolderID `json:"folder_id,omitzero"`
	}
	for text, want := range map[string]tree.FolderID{`{}`: "", `{"folder_id":null}`: "", `{"folder_id":"f"}`: "f", `{"folder_id":"null"}`: "null"} {
		got := holder{FolderID: "before"}
		if text == `{}` {
			got = holder{}
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil || got.FolderID != want {
			t.Errorf("%s: %q, %v; want %q", text, got.FolderID, err, want)
		}
	}
	for _, text := range []string{`{"folder_id":""}`, `{"folder_id":1}`, `{"folder_id":["f"]}`, `{"folder_id":{}}`, `{"folder_id":true}`} {
		var got holder
		if err := json.Unmarshal([]byte(text), &got); err == nil {
			t.Errorf("%s is read as %q", text, got.FolderID)
		}
	}
}

package itemstore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/grapnelhq/grapnel/internal/memory/itemstore"
	"github.com/grapnelhq/grapnel/internal/memory/recall"
	"github.com/grapnelhq/grapnel/internal/memory/turnpolicy"
)

// Example remembers, recalls and forgets.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "memory-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	store, err := itemstore.Open(ctx, "sqlite:"+filepath.Join(dir, "memory.db"), itemstore.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = store.Close() }()

	ann := itemstore.New{
		Scope: itemstore.ScopeUser, ScopeID: "ann", Category: turnpolicy.Factual, Source: itemstore.SourceTurn,
		Slot: "home_city", Text: "Ann lives in Bern.", Evidence: "I live in Bern.",
	}
	moved := ann
	moved.Text, moved.Evidence = "Ann lives in Ulm.", "I have moved to Ulm."
	for _, item := range []itemstore.New{ann, moved, moved} {
		outcomes, err := store.Remember(ctx, itemstore.Batch{WorkspaceID: "w", Items: []itemstore.New{item}})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(outcomes[0].Change, outcomes[0].Item.Text)
	}

	view := itemstore.View{WorkspaceID: "w", UserID: "ann"}
	found, err := store.Recall(ctx, view, recall.Read("Where does Ann live?"), time.Now())
	if err != nil {
		fmt.Println(err)
		return
	}
	var ids []string
	for _, item := range recall.Pick(found.Ranked, recall.Limits{}).Items {
		fmt.Println("recalled", item.Text)
		ids = append(ids, item.ID)
	}

	removed, err := store.Forget(ctx, view, ids)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("forgotten, with versions:", len(removed.IDs))
	outcomes, err := store.Remember(ctx, itemstore.Batch{WorkspaceID: "w", Items: []itemstore.New{ann}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(outcomes[0].Change, outcomes[0].Item.Text)

	// Output:
	// added Ann lives in Bern.
	// replaced Ann lives in Ulm.
	// known Ann lives in Ulm.
	// recalled Ann lives in Ulm.
	// forgotten, with versions: 2
	// forgotten Ann lives in Bern.
}

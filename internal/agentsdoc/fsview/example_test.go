package fsview_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/grapnelhq/grapnel/internal/agentsdoc/fsview"
)

func ExampleOS() {
	base, err := os.MkdirTemp("", "view")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(base) }()
	if err := os.Symlink("nowhere", filepath.Join(base, "link")); err != nil {
		fmt.Println(err)
		return
	}

	dir, err := fsview.OS{}.OpenDir(base)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = dir.Close() }()
	info, err := dir.Lstat("link")
	fmt.Println(info.IsLink(), err)
	_, err = dir.OpenDir("link")
	fmt.Println(err)
	// Output:
	// true <nil>
	// is a symbolic link
}

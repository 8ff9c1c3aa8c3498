package persona

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestCreateHalf: a file that a full disk cut short is not there afterwards, or
// it would be kept for ever.
func TestCreateHalf(t *testing.T) {
	t.Parallel()

	full := errors.New("no space left on device")
	path := filepath.Join(t.TempDir(), "f")
	made, err := create(path, func(w io.Writer) error {
		_, err := io.WriteString(w, "half a te")
		return errors.Join(err, full)
	})
	if made || !errors.Is(err, full) {
		t.Errorf("create = %v, %v", made, err)
	}
	if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
	made, err = create(path, func(w io.Writer) error {
		_, err := io.WriteString(w, "a text")
		return err
	})
	if !made || err != nil {
		t.Errorf("the next time: create = %v, %v", made, err)
	}
}

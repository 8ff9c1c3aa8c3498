//go:build !unix

package chain

import "errors"

// mkfifo fails where systems have none.
func mkfifo(string) error { return errors.ErrUnsupported }

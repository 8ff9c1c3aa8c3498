//go:build !unix

package home

import "os"

// openFlags are plain: only unix has pipes and devices among its files.
const openFlags = os.O_RDONLY

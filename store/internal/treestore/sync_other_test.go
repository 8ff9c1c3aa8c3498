//go:build !linux

package treestore_test

import "os"

func dataSync(f *os.File) error { return f.Sync() }

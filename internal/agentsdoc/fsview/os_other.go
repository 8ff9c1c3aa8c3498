//go:build !linux

package fsview

// OpenDir implements [FS].
func (OS) OpenDir(path string) (Dir, error) { return Portable{}.OpenDir(path) }

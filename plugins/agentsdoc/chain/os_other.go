//go:build !linux

package chain

// OpenDir implements [FS].
func (OS) OpenDir(path string) (Dir, error) { return portable{}.OpenDir(path) }

package watch

import "golang.org/x/sys/unix"

// remote reports whether another machine or program changes a directory's files without this system's knowledge.
func remote(directory string) bool {
	var st unix.Statfs_t
	if unix.Statfs(directory, &st) != nil {
		return false
	}
	switch int64(st.Type) { //nolint:unconvert // the type differs by architecture
	case unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC,
		unix.CODA_SUPER_MAGIC, unix.AFS_SUPER_MAGIC, unix.V9FS_MAGIC, unix.CEPH_SUPER_MAGIC, unix.FUSE_SUPER_MAGIC:
		return true
	}
	return false
}

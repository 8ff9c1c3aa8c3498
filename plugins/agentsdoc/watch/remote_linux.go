package watch

import "golang.org/x/sys/unix"

// remote reports whether a folder's files belong to another machine or program,
// which changes them without this system's knowledge. Where that cannot be found
// out, they count as this one's.
func remote(folder string) bool {
	var st unix.Statfs_t
	if unix.Statfs(folder, &st) != nil {
		return false
	}
	switch int64(st.Type) { //nolint:unconvert // the type differs by architecture
	case unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC,
		unix.CODA_SUPER_MAGIC, unix.AFS_SUPER_MAGIC, unix.V9FS_MAGIC, unix.CEPH_SUPER_MAGIC, unix.FUSE_SUPER_MAGIC:
		return true
	}
	return false
}

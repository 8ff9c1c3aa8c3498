package store

import "github.com/grapnelhq/grapnel/store/sqldb"

// Code says what kind of failure an [Error] is.
type Code = sqldb.Code

// The codes.
const (
	// CodeInternal is everything that has no code of its own.
	CodeInternal = sqldb.CodeInternal
	// CodeDSN is a data source name that says nothing usable.
	CodeDSN = sqldb.CodeDSN
	// CodeNotFound is a manifest, text or database that is not there.
	CodeNotFound = sqldb.CodeNotFound
	// CodeAmbiguous is a short id that several manifests begin with.
	CodeAmbiguous Code = "ambiguous"
	// CodeInvalid is a manifest or text that cannot be kept, or was kept and is
	// none.
	CodeInvalid Code = "invalid"
	// CodeKey is a thread whose manifests are keyed, for a store without the key.
	CodeKey Code = "key_needed"
	// CodeSchema is a database or a manifest that a newer Grapnel wrote, or a
	// database of another program.
	CodeSchema = sqldb.CodeSchema
	// CodeDamaged is a file that is no database, or not any more.
	CodeDamaged = sqldb.CodeDamaged
	// CodeLocked is a database that others kept locked for too long.
	CodeLocked = sqldb.CodeLocked
	// CodeFull is a disk, or quota, without room.
	CodeFull = sqldb.CodeFull
	// CodePermission is a database that this user may not read or write.
	CodePermission = sqldb.CodePermission
	// CodeUnreachable is a server that does not answer.
	CodeUnreachable = sqldb.CodeUnreachable
)

// Error is a failure of the store. Its text says what to do next.
type Error = sqldb.Error

// HasCode reports whether err is, or wraps, an [*Error] with that code.
func HasCode(err error, code Code) bool { return sqldb.HasCode(err, code) }

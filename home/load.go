package home

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"unicode/utf8"

	"github.com/grapnelhq/grapnel/internal/text"
	"github.com/grapnelhq/grapnel/manifest"
	"github.com/grapnelhq/grapnel/phases"
)

// The files of a runtime home.
const (
	SoulFile     = "SOUL.md"
	IdentityFile = "IDENTITY.md"
	UserFile     = "USER.md"
)

// Statuses of a file that is no trouble. The others are codes.
const (
	StatusLoaded  = "loaded"
	StatusMissing = "missing"
)

// Codes of diagnostics. Those of a file that was not read are its status, too,
// but for CodeMissing.
const (
	// CodeMissing is a file that should be there and is not. USER.md is optional:
	// without it there is a row and no diagnostic.
	CodeMissing = "missing_file"
	// CodeReadError is a file that cannot be read: no permission, a loop of links,
	// a link to nothing.
	CodeReadError = "file_read_error"
	// CodeNotRegular is a folder, pipe, socket or device in a file's place.
	CodeNotRegular = "file_not_regular"
	// CodeTruncated is a file of which only the first [MaxBytes] were read. The
	// compiler uses the same code for its own, far narrower limit.
	CodeTruncated = "file_truncated"
	// CodeInvalidUTF8 is a text that had to be repaired.
	CodeInvalidUTF8 = "invalid_utf8"
)

// MaxBytes is how much of one file is read: more than any prompt has room for,
// and little enough that a log which was moved there by mistake costs nothing.
const MaxBytes = 1 << 20

// Files are the files of one home, as they were when they were read.
type Files struct {
	Soul, Identity, User File
}

// All lists the files in their order.
func (f *Files) All() []*File { return []*File{&f.Soul, &f.Identity, &f.User} }

// File is one file of a home.
type File struct {
	// Text is UTF-8 without NUL, byte order mark or carriage returns. It is empty
	// where nothing was read.
	Text string
	// Row is the file's row of the manifest. Its Chars are those of Text; the
	// compiler knows how many of them reached the prompt.
	Row manifest.File
	// Diagnostics say what is wrong. Slot is the section that the text is for.
	// Their messages name no place outside the home and are safe for users.
	Diagnostics []phases.Diagnostic
}

// Load reads the files of a home. It never fails, and never waits for another
// program: a pipe or a device in a file's place is not opened. Links are
// followed, since people keep such files under version control elsewhere. An
// empty dir is no home at all: everything is missing.
//
// It keeps nothing and is safe for concurrent use. Reading on each turn costs
// less than finding out for sure whether anything has changed.
func Load(dir string) Files {
	return Files{
		Soul:     load(dir, SoulFile, "soul_core"),
		Identity: load(dir, IdentityFile, "identity_core"),
		User:     load(dir, UserFile, "user_persona"),
	}
}

// load reads one file.
func load(dir, name, section string) File {
	f := File{Row: manifest.File{Path: name, Status: StatusLoaded}}
	data, size, err := []byte(nil), int64(0), fs.ErrNotExist
	if dir != "" {
		data, size, err = read(filepath.Join(dir, name))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Row.Status = StatusMissing
		if name != UserFile {
			f.diagnose(section, CodeMissing, name+" is not in the runtime home")
		}
		return f
	case errors.Is(err, errNotRegular):
		f.Row.Status = CodeNotRegular
		f.diagnose(section, CodeNotRegular, name+" in the runtime home is no regular file and was not opened")
		return f
	case err != nil:
		f.Row.Status = CodeReadError
		f.diagnose(section, CodeReadError, name+" in the runtime home cannot be read: "+reason(err))
		return f
	}
	if len(data) > MaxBytes {
		data = data[:MaxBytes]
		f.diagnose(section, CodeTruncated, fmt.Sprintf("%s is too large: only the first %s of its %s bytes were read",
			name, text.Thousands(MaxBytes), text.Thousands(int(size))))
		data = wholeRunes(data)
	}
	var repaired bool
	f.Text, repaired = clean(string(data))
	f.Row.Chars = text.Chars(f.Text)
	if repaired {
		f.diagnose(section, CodeInvalidUTF8, name+" was not UTF-8 without NUL and was repaired")
	}
	return f
}

func (f *File) diagnose(section, code, message string) {
	f.Diagnostics = append(f.Diagnostics, phases.Diagnostic{
		Code: code, Severity: phases.SeverityWarning, Message: message, Slot: section, SafeForUser: true,
	})
}

// reason is an error without the path, which is nobody's business but the
// operator's.
func reason(err error) string {
	if in, ok := errors.AsType[*os.PathError](err); ok {
		err = in.Err
	}
	return err.Error()
}

// clean makes text of what a file holds, and says whether it had to be repaired.
func clean(s string) (string, bool) {
	valid := text.Repair(s)
	return text.Normalize(valid), valid != s
}

// wholeRunes takes away a character that a cut has left incomplete: it was not
// the file that was wrong.
func wholeRunes(b []byte) []byte {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if tail := b[len(b)-i:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

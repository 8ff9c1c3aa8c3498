package chain

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxRead bounds the bytes that are read of one file.
const maxRead = 1 << 20

// binaryProbe is how much of a file's beginning is searched for a NUL.
const binaryProbe = 8 << 10

// textSum is the hash of a text.
type textSum [sha256.Size]byte

// content is what was read of a file.
type content struct {
	info   Info
	raw    string
	sum    textSum // of raw
	capped bool    // the file goes on
}

// read reads a file that was seen to be regular. What is open now may be
// another, so it is looked at again.
func read(dir Dir, name string) (content, *problem) {
	f, err := dir.Open(name)
	if err != nil {
		return content{}, problemOf(err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Info()
	if err != nil {
		return content{}, problemOf(err)
	}
	if !info.Mode.IsRegular() {
		return content{}, &problem{code: CodeNotRegular, detail: "became something else than a regular file"}
	}
	raw, err := readBounded(f, info.Size)
	if err != nil {
		return content{}, problemOf(err)
	}
	capped := len(raw) > maxRead
	if capped {
		raw = wholeRunes(raw[:maxRead])
	}
	return content{info: info, raw: string(raw), sum: sha256.Sum256(raw), capped: capped}, nil
}

// readBounded reads until the end or one byte beyond maxRead. The size is what
// the system said, which need not be true.
func readBounded(f io.Reader, size int64) ([]byte, error) {
	const least = 512
	buf := make([]byte, 0, max(least, min(size, maxRead)+1))
	for len(buf) <= maxRead {
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, len(buf))
		}
		n, err := f.Read(buf[len(buf):min(cap(buf), maxRead+1)])
		buf = buf[:len(buf)+n]
		switch {
		case errors.Is(err, io.EOF):
			return buf, nil
		case err != nil:
			return nil, err
		case int64(len(buf)) == size:
			return buf, nil // asked for one more, got none: this is the end
		}
	}
	return buf, nil
}

// wholeRunes drops the beginning of a character from the end of a text that was
// cut at a byte.
func wholeRunes(s []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(s); n++ {
		tail := s[len(s)-n:]
		if utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				return s[:len(s)-n]
			}
			break
		}
	}
	return s
}

// fill completes a source with what was read: its text, or why there is none.
func (r *resolver) fill(src *Source, at place) {
	c := at.content
	src.RealPath, src.MTimeMs = at.path, c.info.MTimeMs
	src.SHA256 = hex.EncodeToString(c.sum[:])
	src.Bytes = int64(len(c.raw))
	if c.capped {
		src.Bytes = max(src.Bytes, c.info.Size)
		r.report(diagnostic(CodeReadCap, src.Path, "only the first %d of %d bytes are read", len(c.raw), src.Bytes))
	}
	if strings.IndexByte(c.raw[:min(len(c.raw), binaryProbe)], 0) >= 0 {
		src.State, src.Reason = StateSkipped, string(CodeBinary)
		r.report(diagnostic(CodeBinary, src.Path, "holds a NUL, so it is not text"))
		return
	}
	text := normalise(c.raw)
	if text.replaced > 0 {
		r.report(diagnostic(CodeInvalidUTF8, src.Path, "%d pieces are not valid UTF-8 text and were replaced", text.replaced))
	}
	body := strings.TrimRight(text.text, "\n")
	if strings.TrimSpace(body) == "" {
		src.State, src.Reason = StateSkipped, ReasonBlank
		return
	}
	src.State, src.Text = StateKept, body
	src.origin = origin{sum: c.sum, id: c.info.ID, chars: utf8.RuneCountInString(body), long: c.capped}
	if text.text != c.raw {
		src.origin.sum = sha256.Sum256([]byte(text.text))
		src.origin.raw = c.raw
	}
	src.bound(r.chain.Options.Budget.File)
}

// bound drops what can never be rendered under the limit of one file, so that a
// long chain of long files holds no memory.
func (s *Source) bound(limit int) {
	if len(s.Text) <= limit {
		return
	}
	// Copies, so that the whole is let go. A little more than the limit is left,
	// by which [Render] sees that something is missing.
	s.Text = strings.Clone(runePrefix(s.Text, limit+utf8.UTFMax))
	if s.origin.raw != "" {
		used := sourceBytes(s.origin.raw, len(s.Text))
		s.origin.raw = strings.Clone(s.origin.raw[:used])
	}
	s.origin.long = true
}

// runePrefix is the longest beginning of whole characters in n bytes.
func runePrefix(s string, n int) string {
	if n >= len(s) {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

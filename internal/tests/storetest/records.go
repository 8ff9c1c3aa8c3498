package storetest

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"testing"
)

// Pack compresses a record as a store keeps it.
func Pack(record []byte) ([]byte, error) {
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	_, err := w.Write(record)
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}

// Edit changes a piece of a compressed record, which must be there.
func Edit(packed []byte, from, to string) ([]byte, error) {
	r, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	record, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	edited := bytes.Replace(record, []byte(from), []byte(to), 1)
	if bytes.Equal(record, edited) {
		return nil, fmt.Errorf("the record does not hold %q", from)
	}
	return Pack(edited)
}

// EditRecord changes the one record that a condition of SQL selects, and of what is beside it only the length.
func EditRecord(tb testing.TB, dsn, where, from, to string) {
	tb.Helper()
	var packed []byte
	db := Raw(tb, dsn)
	if err := db.QueryRowContext(tb.Context(), "SELECT record FROM manifests WHERE "+where).Scan(&packed); err != nil {
		tb.Fatal(err)
	}
	edited, err := Edit(packed, from, to)
	if err != nil {
		tb.Fatal(err)
	}
	Exec(tb, dsn, "UPDATE manifests SET record = $1, bytes = bytes + $2 WHERE "+where, edited, len(to)-len(from))
}

package storetest

import (
	"bytes"
	"compress/zlib"
	"io"
	"testing"
)

// Pack compresses a record as a store keeps it.
func Pack(tb testing.TB, record []byte) []byte {
	tb.Helper()
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	if _, err := w.Write(record); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// EditRecord changes the one record that a condition of SQL selects, and nothing beside it.
func EditRecord(tb testing.TB, dsn, where, from, to string) {
	tb.Helper()
	var packed []byte
	db := Raw(tb, dsn)
	if err := db.QueryRowContext(tb.Context(), "SELECT record FROM manifests WHERE "+where).Scan(&packed); err != nil {
		tb.Fatal(err)
	}
	r, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		tb.Fatal(err)
	}
	record, err := io.ReadAll(r)
	if err != nil {
		tb.Fatal(err)
	}
	edited := bytes.Replace(record, []byte(from), []byte(to), 1)
	if bytes.Equal(record, edited) {
		tb.Fatalf("the record where %s does not hold %q", where, from)
	}
	Exec(tb, dsn, "UPDATE manifests SET record = $1, bytes = $2 WHERE "+where, Pack(tb, edited), len(edited))
}

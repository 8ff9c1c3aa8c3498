package sqldb

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/binary"
	"slices"
)

// SQLite's SecureDelete overwrites rows that are removed and pages that become free. It does not overwrite the copies
// that stay behind in the unused middle of a page when rows move to another one (rebuildPage in its btree.c). The file's
// format is described in https://www.sqlite.org/fileformat2.html.

// wipeGaps overwrites the unused middle of the pages of tables.
func (d *DB) wipeGaps(ctx context.Context, tables []string) error {
	pages, err := d.pagesWithGaps(ctx, tables)
	if err != nil || len(pages) == 0 {
		return err
	}
	return d.Pieces(ctx, func() (more bool, err error) {
		const most = 64
		some := pages[:min(most, len(pages))]
		pages = pages[len(some):]
		return len(pages) > 0, d.Change(ctx, "overwriting what was removed", func(ctx context.Context, tx *sql.Tx) error {
			for _, page := range some {
				if err := wipeGap(ctx, tx, page); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// pagesWithGaps returns the pages of tables with something in their unused middle.
func (d *DB) pagesWithGaps(ctx context.Context, tables []string) (pages []int64, err error) {
	const query = "SELECT p.pgno, p.data FROM dbstat s JOIN sqlite_dbpage p ON p.pgno = s.pageno WHERE s.name = $1 AND s.pagetype <> 'overflow'"
	err = d.Snapshot(ctx, "looking for what was removed", func(tx *sql.Tx) error {
		for _, table := range tables {
			err := Each(ctx, tx, query, []any{table}, func(rows *sql.Rows) error {
				var page int64
				var data sql.RawBytes
				err := rows.Scan(&page, &data)
				if len(bytes.Trim(gap(data), "\x00")) > 0 {
					pages = append(pages, page)
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return pages, err
}

// wipeGap overwrites the unused middle of a page, unless the page no longer holds rows.
func wipeGap(ctx context.Context, tx *sql.Tx, page int64) error {
	const query = "SELECT data FROM sqlite_dbpage WHERE pgno = $1"
	var data []byte
	if err := tx.QueryRowContext(ctx, query, page).Scan(&data); err != nil {
		return err
	}
	size := int64(len(data))
	about, at := pointerMap(page, size)
	var pointers []byte
	if err := tx.QueryRowContext(ctx, query, about).Scan(&pointers); err != nil {
		return err
	}
	const root, inner = 1, 5 // of a tree; the others are free, or hold the rest of a long row
	if !slices.Contains([]byte{root, inner}, pointers[at]) {
		return nil
	}
	clear(gap(data))
	_, err := tx.ExecContext(ctx, "UPDATE sqlite_dbpage SET data = $1 WHERE pgno = $2", data, page)
	return err
}

// pointerMap returns which page, and which byte of it, says what a page is used for. A database that gives space back
// in pieces has such pages.
func pointerMap(page, size int64) (about, at int64) {
	const lockByte = 1 << 30 // the page with this byte is never used
	each := size/5 + 1
	about = (page-2)/each*each + 2
	if about == lockByte/size+1 {
		about++
	}
	return about, 5 * (page - about - 1)
}

// gap is the unused middle of a page of rows, between the pointers to them and the first of them; nil for other pages,
// and for the first, which begins with the file's header.
func gap(data []byte) []byte {
	if len(data) < 512 {
		return nil
	}
	var header int
	switch data[0] {
	case 2, 5: // inner
		header = 12
	case 10, 13: // leaf
		header = 8
	default:
		return nil
	}
	begin, end := header+2*int(binary.BigEndian.Uint16(data[3:])), int(binary.BigEndian.Uint16(data[5:]))
	if begin >= end || end > len(data) {
		return nil
	}
	return data[begin:end]
}

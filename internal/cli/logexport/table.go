package logexport

import (
	"encoding/csv"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/grapnelhq/grapnel/manifest"
)

// sectionColumns is how many of the columns are about a section.
const sectionColumns = 12

// Columns are the columns of the format CSV, those of the record first.
func Columns() []string {
	return strings.Fields(`manifest_id kind created_at workspace_id thread_id seq turn_id round session_id actor agent_id task_id mode
		provider model fingerprint_full hash_full hash
		position section_id title owner stability placement chars original_chars tokens cut_by section_hash fingerprint`)
}

// rows writes one row for each section of a record, and for a record without sections one row without them.
func rows(w *csv.Writer, r manifest.Record) error {
	m, err := manifest.Parse(r.Data)
	if err != nil {
		return err
	}
	record := []string{
		m.ManifestID, string(m.Kind), m.CreatedAt.Format(time.RFC3339Nano), m.WorkspaceID, m.ThreadID, strconv.FormatUint(m.Seq, 10), m.TurnID,
		strconv.Itoa(m.Round), m.SessionID, m.Actor, m.AgentID, m.TaskID, string(m.Mode), m.Cache.Provider, m.Cache.Model, m.FingerprintFull, m.HashFull, m.Hash,
	}
	if len(m.Sections) == 0 {
		return writeRow(w, append(record, make([]string, sectionColumns)...))
	}
	for i := range m.Sections {
		if err := writeRow(w, slices.Concat(record, cellsOf(&m.Sections[i]))); err != nil {
			return err
		}
	}
	return nil
}

func cellsOf(s *manifest.Section) []string {
	tokens, cut := "", ""
	if s.Tokens != nil {
		tokens = strconv.Itoa(*s.Tokens)
	}
	if s.Truncation != nil {
		cut = string(s.Truncation.Limit)
	}
	return []string{
		strconv.Itoa(s.Position), s.SectionID, s.Title, s.Owner, string(s.Stability), string(s.Placement),
		strconv.Itoa(s.Chars), strconv.Itoa(s.OriginalChars), tokens, cut, s.Hash, s.Fingerprint,
	}
}

func writeRow(w *csv.Writer, row []string) error {
	for i, cell := range row {
		if strings.IndexAny(cell, "=+-@\t\r") == 0 {
			row[i] = "'" + cell // a spreadsheet would take it for a formula
		}
	}
	err := w.Write(row)
	w.Flush()
	return errors.Join(err, w.Error())
}

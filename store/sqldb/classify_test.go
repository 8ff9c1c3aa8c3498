package sqldb

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestClassifyPostgres(t *testing.T) {
	t.Parallel()

	tests := []struct {
		state string
		want  Code
	}{
		{"53100", CodeFull},
		{"53300", CodeUnreachable},
		{"55P03", CodeLocked},
		{"40P01", CodeLocked},
		{"42501", CodePermission},
		{"25006", CodePermission},
		{"28P01", CodeUnreachable},
		{"3D000", CodeUnreachable},
		{"57P03", CodeUnreachable},
		{"08006", CodeUnreachable},
		{"XX001", CodeDamaged},
		{"23505", CodeInternal},
		{"42P01", CodeInternal},
	}
	for _, tt := range tests {
		t.Run(tt.state, func(t *testing.T) {
			t.Parallel()

			got := classifyPostgres(fmt.Errorf("wrapped: %w", &pgconn.PgError{Code: tt.state}))
			if got.Code != tt.want || (got.Remedy == "") != (tt.want == CodeInternal) {
				t.Errorf("%+v, want the code %s", got, tt.want)
			}
		})
	}
	if got := classifyPostgres(fmt.Errorf("wrapped: %w", io.ErrUnexpectedEOF)); got.Code != CodeUnreachable {
		t.Errorf("a connection that ended: %+v", got)
	}
	if got := classifyPostgres(errors.New("other")); got.Code != CodeInternal {
		t.Errorf("an unknown error: %+v", got)
	}
}

func TestMigrationsAreNumberedThrough(t *testing.T) {
	t.Parallel()

	for _, folder := range []string{"sqlite", "postgres"} {
		files, last, err := migrationsOf(folder)
		if err != nil {
			t.Fatal(err)
		}
		entries, err := fs.ReadDir(files, ".")
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, e := range entries {
			seen[e.Name()[:5]] = true
		}
		for n := int64(1); n <= last; n++ {
			if !seen[fmt.Sprintf("%05d", n)] {
				t.Errorf("%s: there is no migration %d", folder, n)
			}
		}
		if int64(len(entries)) != last || last < 4 {
			t.Errorf("%s: %d files, the last is number %d", folder, len(entries), last)
		}
	}
}

package sqldb

import (
	"errors"
	"fmt"
	"io"
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
			if got.Code != tt.want || (got.Hint == "") != (tt.want == CodeInternal) {
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

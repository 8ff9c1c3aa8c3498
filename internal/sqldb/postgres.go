package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

func openPostgres(dsn string, o Options) (*DB, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		// The driver's error quotes the URL, without the password.
		return nil, &Error{Code: CodeDSN, Message: "the data source name is not a PostgreSQL URL", Err: err, Hint: "use postgres://USER@HOST/DATABASE"}
	}
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "grapnel"
	}
	pool := func() *sql.DB {
		db := stdlib.OpenDB(*cfg)
		db.SetMaxOpenConns(o.MaxConns)
		db.SetMaxIdleConns(o.MaxConns)
		return db
	}
	name := fmt.Sprintf("the database %s on %s", cfg.Database, net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port))))
	return &DB{opts: o, name: name, maxLog: maxLog, write: pool(), read: pool(), server: cfg, dialect: dialect{
		kind: Postgres, directory: "postgres", goose: goose.DialectPostgres, classify: classifyPostgres,
		foreign:  func(context.Context, *sql.DB, string) error { return nil },
		snapshot: &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true},
		change:   &sql.TxOptions{Isolation: sql.LevelReadCommitted}, blocks: true,
	}}, nil
}

func classifyPostgres(err error) *Error {
	e := &Error{Code: CodeInternal}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		e.Code, e.Message = CodeUnreachable, "cannot be reached"
		e.Hint = "check that the server runs, the address, and the user's right to connect"
	}
	cause, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		_, network := errors.AsType[net.Error](err)
		ended := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		lost := (network || ended || pgconn.SafeToRetry(err)) && !errors.Is(err, context.DeadlineExceeded) // a DeadlineExceeded is a net.Error too
		if e.Code == CodeInternal && lost {
			e.Code, e.Message, e.Hint = CodeUnreachable, "went away", "check that the server runs, and try again"
		}
		return e
	}
	switch state := cause.Code; {
	case state == "53100": // disk_full
		e.Code, e.Message, e.Hint = CodeFull, "has no space left", "free space on the server's disk; what was kept is safe"
	case state == "55P03" || state == "57014" || state == "40P01": // lock_not_available, query_canceled, deadlock_detected
		e.Code, e.Message, e.Hint = CodeLocked, "is locked by another session", "look for long transactions in pg_stat_activity, and try again"
	case state == "42501" || state == "25006": // insufficient_privilege, read_only_sql_transaction
		e.Code, e.Message, e.Hint = CodePermission, "may not be changed by this user", "grant it the rights, or connect as another user"
	case strings.HasPrefix(state, "28"), state == "3D000": // invalid authorization, no such database
		e.Code, e.Message, e.Hint = CodeUnreachable, "refuses this user", "check user, password and the name of the database"
	case state == "XX001" || state == "XX002": // data_corrupted, index_corrupted
		e.Code, e.Message, e.Hint = CodeDamaged, "is damaged", "put a backup in its place"
	case strings.HasPrefix(state, "08"), strings.HasPrefix(state, "57P"), strings.HasPrefix(state, "53"):
		e.Code, e.Message, e.Hint = CodeUnreachable, "does not take work now", "wait until the server is up, or has connections free, and try again"
	}
	return e
}

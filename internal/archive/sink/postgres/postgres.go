// Package postgres sends records to PostgreSQL, one row per record.
//
// In one transaction, a batch is copied into a temporary table and inserted from there. A row replaces an existing row
// that is older or equally old. A missing table is created. An existing table must have the columns.
//
//	postgres://USER:PASSWORD@HOST:PORT/DATABASE?table=TABLE
//
// TABLE is pages by default; it can be schema.table. Other parameters are those of libpq (sslmode, host=/run/postgresql
// …), as are the variables PGPASSWORD, PGUSER … and the file ~/.pgpass. Prefer these to a password in the URL.
package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"kumo/internal/archive/sink"
	"kumo/internal/base/advice"
)

var (
	_ sink.Sink   = (*Sink)(nil)
	_ sink.Lister = (*Sink)(nil)
)

// A Sink is a table of a database.
type Sink struct {
	cfg   *pgx.ConnConfig
	at    string // URL for messages
	table pgx.Identifier
	conn  *pgx.Conn // nil: not connected
	width int       // number of columns that the table has; older tables lack some of the last
}

// columns are the columns in the order in which they are copied. An existing table may lack those from firstAdded on.
var columns = []struct{ name, kind string }{
	{"id", "text PRIMARY KEY"}, {"url", "text NOT NULL"}, {"status", "integer NOT NULL"}, {"time", "timestamptz NOT NULL"},
	{"type", "text"}, {"charset", "text"}, {"lang", "text"}, {"title", "text"}, {"h1", "text"}, {"description", "text"},
	{"canonical", "text"}, {"bytes", "bigint NOT NULL"}, {"digest", "text"}, {"links", "integer NOT NULL"},
	{"truncated", "text"}, {"host", "text NOT NULL"}, {"depth", "integer"}, {"noindex", "boolean NOT NULL"},
	{"headline", "text"}, {"author", "text"}, {"published", "text"}, {"text", "text"}, {"fields", "jsonb"},
	{"cut", "boolean NOT NULL"}, {"server_ip", "text"}, {"kind", "text"}, {"comments", "text"},
	{"usage", "jsonb"},
}

// firstAdded is the first of the columns that older tables lack.
const firstAdded = 24

const (
	connectTimeout = 10 * time.Second
	timeout        = 2 * time.Minute // for a batch: another client may hold a lock, or the server may be gone
)

// Check checks the form of a sink's URL, except for libpq's parameters, which depend on the machine.
func Check(at *url.URL) error {
	_, err := parse(at)
	return err
}

// parse parses kumo's part of a sink's URL, and makes no connection.
func parse(at *url.URL) (*Sink, error) {
	s := &Sink{at: sink.RedactURL(at), table: pgx.Identifier{"pages"}}
	if name := at.Query().Get("table"); name != "" {
		s.table = strings.Split(name, ".")
		if len(s.table) > 2 || s.table[0] == "" || s.table[len(s.table)-1] == "" {
			return nil, advice.Usage("%s: invalid table %q: want TABLE or SCHEMA.TABLE", s.at, name)
		}
	}
	return s, nil
}

// Open connects to a database, and creates the table if it does not exist.
func Open(ctx context.Context, at *url.URL) (*Sink, error) {
	s, err := parse(at)
	if err != nil {
		return nil, err
	}
	dsn, query := *at, at.Query()
	query.Del("table")
	dsn.RawQuery = query.Encode()
	if s.cfg, err = pgx.ParseConfig(dsn.String()); err != nil {
		return nil, advice.Usage("%s: want a URL such as postgres://user@host:5432/database?table=pages", s.at)
	}
	if s.cfg.ConnectTimeout == 0 {
		s.cfg.ConnectTimeout = connectTimeout
	}
	if _, is := s.cfg.RuntimeParams["application_name"]; !is {
		s.cfg.RuntimeParams["application_name"] = "kumo"
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := s.do(ctx, s.create); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// do calls f with a connection, which it opens if there is none. A broken connection is dropped.
func (s *Sink) do(ctx context.Context, f func(context.Context, *pgx.Conn) error) (err error) {
	if s.conn == nil {
		if s.conn, err = pgx.ConnectConfig(ctx, s.cfg); err != nil {
			s.conn = nil
			return s.explain("reach", err)
		}
	}
	if err = f(ctx, s.conn); err != nil && (s.conn.IsClosed() || ctx.Err() != nil) {
		_ = s.conn.Close(context.WithoutCancel(ctx)) // it is already broken
		s.conn = nil
	}
	return err
}

func (s *Sink) create(ctx context.Context, c *pgx.Conn) error {
	var kept []string
	for _, col := range columns {
		kept = append(kept, pgx.Identifier{col.name}.Sanitize()+" "+col.kind)
	}
	var there *string
	if err := c.QueryRow(ctx, "SELECT to_regclass($1)::text", s.table.Sanitize()).Scan(&there); err != nil {
		return s.explain("look into", err)
	}
	if s.width = len(columns); there == nil {
		_, err := c.Exec(ctx, "CREATE TABLE IF NOT EXISTS "+s.table.Sanitize()+" ("+strings.Join(kept, ", ")+")")
		if err != nil {
			return s.explain("create the table in", err)
		}
	} else {
		rows, err := c.Query(ctx, "SELECT attname::text FROM pg_attribute WHERE attrelid = to_regclass($1) AND attnum > 0 "+
			"AND NOT attisdropped", s.table.Sanitize())
		if err != nil {
			return s.explain("inspect", err)
		}
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return s.explain("inspect", err)
		}
		for s.width = firstAdded; s.width < len(columns) && slices.Contains(names, columns[s.width].name); {
			s.width++
		}
	}
	// An empty batch checks the columns, the key and the permissions.
	return s.put(ctx, c, nil)
}

// Put implements sink.Sink.
func (s *Sink) Put(ctx context.Context, batch []sink.Record) error {
	batch = sink.Newest(batch)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return s.do(ctx, func(ctx context.Context, c *pgx.Conn) error { return s.put(ctx, c, batch) })
}

func (s *Sink) put(ctx context.Context, c *pgx.Conn, batch []sink.Record) error {
	tx, err := c.Begin(ctx)
	if err != nil {
		return s.explain("write to", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // no effect after a commit
	name := pgx.Identifier{"kumo_batch"}
	_, err = tx.Exec(ctx, "CREATE TEMP TABLE IF NOT EXISTS kumo_batch (LIKE "+s.table.Sanitize()+") ON COMMIT DELETE ROWS")
	if err != nil {
		return s.explain("write to", err)
	}
	var names, sets []string
	for _, col := range columns[:s.width] {
		names = append(names, col.name)
		if col.name != "id" {
			quoted := pgx.Identifier{col.name}.Sanitize()
			sets = append(sets, quoted+" = excluded."+quoted)
		}
	}
	_, err = tx.CopyFrom(ctx, name, names, pgx.CopyFromSlice(len(batch), func(i int) ([]any, error) {
		return values(&batch[i])[:s.width], nil
	}))
	if err != nil {
		return s.explain("write to", err)
	}
	list := `"` + strings.Join(names, `", "`) + `"`
	_, err = tx.Exec(ctx, "INSERT INTO "+s.table.Sanitize()+" AS old ("+list+") SELECT "+list+" FROM kumo_batch "+
		"ON CONFLICT (id) DO UPDATE SET "+strings.Join(sets, ", ")+` WHERE old."time" <= excluded."time"`)
	if err == nil {
		err = tx.Commit(ctx)
	}
	if err != nil {
		return s.explain("write to", err)
	}
	return nil
}

// values returns the values of a row; values that a page does not have are null.
func values(r *sink.Record) []any {
	text := func(v string) any {
		if v == "" {
			return nil
		}
		return v
	}
	var depth, fields, usage any
	if r.Depth >= 0 {
		depth = int32(r.Depth)
	}
	if len(r.Fields) > 0 {
		fields, _ = json.Marshal(r.Fields) // cannot fail: the values were parsed from JSON
	}
	if r.Usage != nil {
		usage = r.Usage.JSON()
	}
	return []any{r.ID(), r.URL, int32(r.Status), r.Time, text(r.Type), text(r.Charset), text(r.Lang), text(r.Title),
		text(r.H1), text(r.Description), text(r.Canonical), r.Bytes, text(r.Digest), int32(r.Links), text(r.Truncated),
		r.Host, depth, r.NoIndex, text(r.Headline), text(r.Author), text(r.Published), text(r.Text), fields, r.Cut,
		text(r.ServerIP), text(r.Kind), text(r.Comments), usage}
}

// Flush implements sink.Sink: rows are visible at once.
func (s *Sink) Flush(context.Context) error { return nil }

// Each implements sink.Lister.
func (s *Sink) Each(ctx context.Context, f func(url string, version time.Time) error) error {
	return s.do(ctx, func(ctx context.Context, c *pgx.Conn) error {
		rows, err := c.Query(ctx, `SELECT url, "time" FROM `+s.table.Sanitize())
		if err != nil {
			return s.explain("read", err)
		}
		defer rows.Close()
		for rows.Next() {
			var url string
			var at time.Time
			if err := rows.Scan(&url, &at); err != nil {
				return s.explain("read", err)
			}
			if err := f(url, at.UTC()); err != nil {
				return err
			}
		}
		if err := rows.Err(); err != nil {
			return s.explain("read", err)
		}
		return nil
	})
}

// Close implements sink.Sink.
func (s *Sink) Close() error {
	if s.conn == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.conn.Close(ctx) // all batches are committed
	s.conn = nil
	return nil
}

// explain adds to an error what failed, whether it is temporary, and how to fix it.
func (s *Sink) explain(doing string, err error) error {
	said := fmt.Errorf("%s %s: %w", doing, s.at, withoutConfig(err))
	pg, is := errors.AsType[*pgconn.PgError](err)
	if !is {
		if errors.Is(err, context.Canceled) {
			return said
		}
		if sink.TLSAdvice(err) != "" {
			return sink.Permanent(advice.With(said, "set sslrootcert=FILE to the certificates of the authority that "+
				"signed the server's; sslmode=verify-full also requires the URL's host in it"))
		}
		if errors.Is(err, io.EOF) || pgconn.Timeout(err) || pgconn.SafeToRetry(err) || unreachable(err) {
			return sink.Temporary(advice.With(said, "is PostgreSQL running there, and can this machine reach it?"))
		}
		return said
	}
	table := strings.Join(s.table, ".")
	switch {
	case strings.HasPrefix(pg.Code, "28"):
		return advice.With(said, "set the user in the URL, and the password in PGPASSWORD or ~/.pgpass")
	case pg.Code == "3D000":
		return advice.With(said, "create the database: createdb "+s.cfg.Database)
	case pg.Code == "42501":
		return advice.With(said, fmt.Sprintf("%s can neither create the table %s nor write to it: a user with permission "+
			"must create it, or GRANT SELECT, INSERT, UPDATE ON %s TO %s, and TEMPORARY on the database",
			s.cfg.User, table, table, s.cfg.User))
	case strings.HasPrefix(pg.Code, "42") || pg.Code == "3F000" || pg.Code == "42P10":
		return advice.With(said, fmt.Sprintf("%s does not have kumo's columns: name another table with ?table=, which "+
			"kumo creates if it is missing", table))
	// Errors of the connection, of resources and of the system's disk, canceled connections, and conflicts with other
	// transactions.
	case strings.HasPrefix(pg.Code, "08") || strings.HasPrefix(pg.Code, "53") || strings.HasPrefix(pg.Code, "57") ||
		strings.HasPrefix(pg.Code, "58") || strings.HasPrefix(pg.Code, "40") || strings.HasPrefix(pg.Code, "55"):
		return sink.Temporary(said)
	}
	return said
}

// unreachable reports whether an error means that a connection failed or was closed.
func unreachable(err error) bool {
	if _, is := errors.AsType[*pgconn.ConnectError](err); is {
		return true
	}
	return sink.IsTemporary(err) || errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(err.Error(), "conn closed")
}

// A oneLineError is an error as one line, without pgx's connection settings.
type oneLineError struct {
	error
	text string
}

func (f *oneLineError) Error() string { return f.text }
func (f *oneLineError) Unwrap() error { return f.error }

func withoutConfig(err error) error {
	text := err.Error()
	if e, is := errors.AsType[*pgconn.ConnectError](err); is {
		if inner := errors.Unwrap(e); inner != nil {
			text = inner.Error()
		}
	}
	var lines []string // one for each attempt to connect, with TLS and without: often the same
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return &oneLineError{err, strings.Join(lines, "; ")}
}

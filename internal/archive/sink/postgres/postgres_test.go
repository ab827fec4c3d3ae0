package postgres

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"kumo/internal/archive/sink"
	"kumo/internal/archive/sink/sinktest"
)

func open(ctx context.Context, at string) (sink.Sink, error) {
	u, err := sink.Parse(at)
	if err != nil {
		return nil, err
	}
	s, err := Open(ctx, u)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func TestContract(t *testing.T) {
	at, err := url.Parse(sinktest.Server(t, "KUMO_TEST_POSTGRES"))
	if err != nil {
		t.Fatal(err)
	}
	secret, _ := at.User.Password()
	fields := func(t *testing.T, place, of string) []byte {
		return []byte(query(t, at.String(), fmt.Sprintf("SELECT fields::text FROM %s WHERE url = '%s'", place, of)))
	}
	sinktest.Run(t, sinktest.Suite{Addr: at.Host, Versions: true, Secret: secret, Fields: fields,
		Open: func(ctx context.Context, addr, place string) (sink.Sink, error) {
			u := *at
			u.Host, u.RawQuery = addr, "table="+place
			return open(ctx, u.String())
		}})
}

func query(t *testing.T, at, sql string) (answer string) {
	t.Helper()
	c, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close(context.Background()) }()
	if strings.HasPrefix(sql, "SELECT") {
		err = c.QueryRow(t.Context(), sql).Scan(&answer)
	} else {
		_, err = c.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	}
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestRows(t *testing.T) {
	at := sinktest.Server(t, "KUMO_TEST_POSTGRES")
	query(t, at, `DROP SCHEMA IF EXISTS "Crawl" CASCADE; CREATE SCHEMA "Crawl"`)
	s, err := open(t.Context(), at+"?table=Crawl.pages")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rec := sinktest.Record(0)
	if err := s.Put(t.Context(), []sink.Record{rec}); err != nil {
		t.Fatal(err)
	}
	got := query(t, at, `SELECT concat_ws('|', id = url, status, to_char("time" AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS'),
		title, links, depth IS NULL, h1 IS NULL, text, fields->0->'values'->>'price') FROM "Crawl".pages`)
	if want := "t|200|2026-11-26 00:00:00|Straße “Nr. 1”|3|t|t|Ein Text.\nUnd noch einer.|12.5"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// A table that an earlier version made is used without the columns that it lacks.
func TestOlderTable(t *testing.T) {
	at := sinktest.Server(t, "KUMO_TEST_POSTGRES")
	query(t, at, `DROP TABLE IF EXISTS older`)
	for lacking := range len(columns) - firstAdded + 1 {
		s, err := open(t.Context(), at+"?table=older")
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Put(t.Context(), []sink.Record{sinktest.Record(lacking)}); err != nil {
			t.Errorf("without %d columns: %v", lacking, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		query(t, at, "ALTER TABLE older DROP COLUMN "+columns[len(columns)-1-lacking].name)
	}
	if got := query(t, at, "SELECT count(*)::text FROM older"); got != fmt.Sprint(len(columns)-firstAdded+1) {
		t.Errorf("%s rows", got)
	}
	if s, err := open(t.Context(), at+"?table=older"); err == nil { // it lacks a column that all versions have
		_ = s.Close()
		t.Error("a table without the column cut is used")
	}
}

func TestErrors(t *testing.T) {
	at := sinktest.Server(t, "KUMO_TEST_POSTGRES")
	u, _ := url.Parse(at)
	secret, _ := u.User.Password()
	query(t, at, `DROP TABLE IF EXISTS other, ours; CREATE TABLE other (id int); CREATE TABLE ours (id int);
		DROP ROLE IF EXISTS nobody; CREATE ROLE nobody LOGIN PASSWORD 'hush'`)
	nobody := strings.Replace(at, u.User.String(), "nobody:hush", 1)
	for name, c := range map[string]struct{ at, secret, names string }{
		"password":   {strings.Replace(at, secret, "wrong-one", 1), "wrong-one", "password authentication failed"},
		"database":   {strings.Replace(at, u.Path, "/nowhere", 1), secret, "nowhere"},
		"columns":    {at + "?table=other", secret, "column"},
		"no schema":  {at + "?table=nowhere.pages", secret, "nowhere"},
		"no right":   {nobody + "?table=pages_of_nobody", "hush", "permission denied"},
		"not theirs": {nobody + "?table=ours", "hush", "permission denied"},
		"table":      {at + "?table=a.b.c", secret, "a.b.c"},
		"sslmode":    {at + "?sslmode=perhaps", secret, "postgres://"},
		"port":       {strings.Replace(at, u.Port(), "99999999", 1), secret, "postgres"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := open(t.Context(), c.at)
			sinktest.CheckError(t, err, c.secret, c.names)
			if sink.IsTemporary(err) {
				t.Errorf("%v is taken for one that is over soon", err)
			}
		})
	}
}

func TestSecured(t *testing.T) {
	at, err := url.Parse(sinktest.Server(t, "KUMO_TEST_POSTGRES"))
	if err != nil {
		t.Fatal(err)
	}
	sinktest.RunTLS(t, func(ctx context.Context, ca, password, place string) (sink.Sink, error) {
		u, query := *at, url.Values{"table": {place}, "sslmode": {"verify-full"}}
		if u.User = url.UserPassword(sinktest.User, password); ca != "" {
			query.Set("sslrootcert", ca)
		}
		u.RawQuery = query.Encode()
		return open(ctx, u.String())
	})
}

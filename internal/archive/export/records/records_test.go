package records_test

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"kumo/internal/archive/export"
	"kumo/internal/archive/export/exporttest"
	"kumo/internal/archive/export/records"
	"kumo/internal/archive/export/target"
	"kumo/internal/archive/sink"
	"kumo/internal/archive/sink/sinktest"
)

func send(t *testing.T, crawl string, cfg records.Config) (*export.Report, error) {
	t.Helper()
	cfg.Crawl, cfg.Temp = crawl, t.TempDir()
	return export.Run(t.Context(), export.Config{Crawl: crawl, Temp: t.TempDir()}, func(*target.Folder) (export.Exporter,
		error) {
		return records.New(t.Context(), cfg)
	})
}

const html = "<html lang=en><title>T</title><a href=/b>b</a><p>A sentence that is long enough to be taken for " +
	"a text, as it has commas, and words.</p><p>Another one follows it, which is as long, so that nobody takes the page " +
	"for a menu, or for less.</p>"

func TestRecordsHaveTextsAndFields(t *testing.T) {
	c := exporttest.Crawl(t, exporttest.Visit{URL: "http://a.test/a", Body: html}, exporttest.Visit{URL: "http://a.test/b",
		Status: 404, Body: "no"},
		exporttest.Visit{URL: "http://a.test/robots.txt", Body: "User-agent: *"})
	m := &sinktest.Memory{}
	at := func() time.Time {
		if _, err := send(t, c.Dir, records.Config{Sink: m}); err != nil {
			t.Fatal(err)
		}
		return m.Records()["http://a.test/a"].Time
	}()
	line := func(url, rule string, at time.Time) string {
		return `{"url":"` + url + `","rule":"` + rule + `","time":"` + at.Format("2006-01-02T15:04:05.000Z") +
			`","fields":{"n":1}}` + "\n"
	}
	text := line("http://a.test/b", "late", at.Add(time.Hour)) + line("http://a.test/a", "one", at) +
		line("http://a.test/a", "two", at.Add(999e6)) +
		line("http://a.test/a", "old", at.Add(-time.Hour)) + line("http://a.test/0", "other", at)
	if err := os.WriteFile(c.Path("fields.jsonl"), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	r, err := send(t, c.Dir, records.Config{Sink: m})
	if err != nil || r.URLs != 2 {
		t.Fatal(err, r)
	}
	a, b := m.Records()["http://a.test/a"], m.Records()["http://a.test/b"]
	if a.Title != "T" || a.Links != 1 || len(a.Text) < 100 || a.Kind != "other" || len(a.Fields) != 2 || a.Fields[0].Rule != "one" ||
		a.Fields[1].Rule != "two" ||
		string(a.Fields[0].Values) != `{"n":1}` {
		t.Errorf("%+v", a)
	}
	if b.Status != 404 || b.Text != "" || len(b.Fields) != 0 || len(m.Records()) != 2 {
		t.Errorf("%+v of %d", b, len(m.Records()))
	}
}

func TestAnExportGoesOn(t *testing.T) {
	var visits []exporttest.Visit
	for i := range sink.BatchRecords + 7 {
		visits = append(visits, exporttest.Visit{URL: fmt.Sprintf("http://a.test/%c%05d", 'a'+i%26, i), Body: "x"})
	}
	c, whole, m, after := exporttest.Crawl(t, visits...), &sinktest.Memory{}, &sinktest.Memory{}, ""
	if _, err := send(t, c.Dir, records.Config{Sink: whole}); err != nil {
		t.Fatal(err)
	}
	all := len(whole.Records())
	enough, first := errors.New("enough"), 0
	_, err := send(t, c.Dir, records.Config{Sink: m, Acknowledged: func(url string, put int64) error {
		after, first = url, int(put)
		return enough
	}})
	if !errors.Is(err, enough) || first == 0 || first > sink.BatchRecords || len(m.Records()) != first {
		t.Fatal(err, len(m.Records()))
	}
	rest := &sinktest.Memory{}
	if _, err = send(t, c.Dir, records.Config{Sink: rest, After: after}); err != nil || len(rest.Records()) != all-first {
		t.Errorf("%v: %d more", err, len(rest.Records()))
	}
	for url := range rest.Records() {
		if _, twice := m.Records()[url]; twice {
			t.Errorf("%s is sent again", url)
		}
	}
}

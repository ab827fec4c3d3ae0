package archive_test

import (
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/archive/place"
	"kumo/internal/archive/place/file"
	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/batch"
	"kumo/internal/batch/archive"
	"kumo/internal/batch/collection"
	"kumo/internal/state/store"
	"kumo/internal/state/store/warc"
)

var (
	news  = &collection.Collection{Code: "de", Directory: "crawler_de"}
	start = time.Date(2026, 11, 21, 3, 4, 5, 678000, time.UTC)
	next  = start.AddDate(0, 0, 1)
)

const day1, day2 = "2026-11-21", "2026-11-22"

// answered returns a Document with an answer.
func answered(url string, at time.Time, status int, head, wire, body string) batch.Document {
	raw := fmt.Sprintf("HTTP/1.1 %d X\r\n%s\r\n", status, head)
	return batch.Document{Collection: "de", URL: url, From: "http://from.test/", Time: at, Took: time.Second,
		Status: status, Request: []byte("GET / HTTP/1.1\r\n\r\n"), Raw: []byte(raw + wire), HeadLen: len(raw),
		Digest: sha1.Sum([]byte(body))}
}

const html = "Content-Type: text/html\r\n"

// documents returns the Documents of two days. On the second, the pages are unchanged, by a 304 or by the same body.
func documents() (one, two []batch.Document) {
	const body, chunked = `<a href="/to">x</a>`, "13\r\n<a href=\"/to\">x</a>\r\n0\r\n\r\n"
	hidden := answered("http://hidden.test/", start, 200, html, "", "")
	hidden.NoArchive, hidden.Raw, hidden.HeadLen = true, nil, 0
	moved := answered("http://moved.test/", start, 301, "Location: http://plain.test/\r\n", "", "")
	moved.RedirectTo = "http://plain.test/"
	one = []batch.Document{
		answered("http://chunked.test/", start, 200, html+"Transfer-Encoding: chunked\r\n", chunked, body),
		{Collection: "de", URL: "http://failed.test/", Time: start, Failure: page.DNS},
		hidden, moved,
		answered("http://plain.test/", start, 200, html, body, body),
	}
	same := func(d batch.Document, s batch.Stored) batch.Document {
		d.Change, d.SameAs, d.Unmodified = page.Unchanged, s, d.Status == 304
		return d
	}
	stored := batch.Stored{Time: start}
	two = []batch.Document{
		same(answered("http://chunked.test/", next, 304, "ETag: x\r\n", "", body), batch.Stored{Time: start,
			Chunked: sha1.Sum([]byte(chunked))}),
		same(answered("http://other.test/", next, 304, "ETag: x\r\n", "", body), batch.Stored{}), // no stored body
		same(answered("http://plain.test/", next, 200, html, body, body), stored),
	}
	return one, two
}

// newPlace returns a storage location with Documents of two days.
func newPlace(t *testing.T) place.Place {
	t.Helper()
	p, err := file.Open(t.TempDir(), vfs.OS)
	if err != nil {
		t.Fatal(err)
	}
	one, two := documents()
	for date, all := range map[string][]batch.Document{day1: one, day2: two} {
		name := batch.DayFolder(news, "doc", date) + "/part-00000"
		err := batch.WriteFile(t.Context(), p, name, func(emit batch.Emit) error {
			for i := range all {
				if err := emit(all[i].Key(), all[i].Append(nil)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func openWARC(dir string) (store.Store, error) {
	return warc.Open(vfs.OS, warc.Config{Dir: dir, Name: "de", Hostname: "test", MaxSize: 4 << 10}, nil)
}

func dayOf(p place.Place, date, dir string) archive.Day {
	return archive.Day{Place: p, Collection: news, Date: date, Dir: filepath.Join(dir, date), Open: openWARC,
		Agent: "kumo"}
}

// records returns all records of a day, by type and URL.
func records(t *testing.T, dir string) map[string]*warc.Record {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "warc", "*.warc.gz"))
	if err != nil || len(names) == 0 {
		t.Fatalf("%q, %v", names, err)
	}
	all := map[string]*warc.Record{}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		r, err := warc.NewReader(f, info.Size(), name)
		for err == nil {
			var rec *warc.Record
			if rec, err = r.Next(); err == nil {
				one := *rec
				one.Block = slices.Clone(rec.Block)
				all[strings.TrimSpace(one.Fields["WARC-Type"]+" "+one.Fields["WARC-Target-URI"])] = &one
			}
		}
	}
	return all
}

func TestADayBecomesWARCs(t *testing.T) {
	p, dir := newPlace(t), t.TempDir()
	one, err := archive.Write(t.Context(), dayOf(p, day1, dir))
	if want := (archive.Counts{Responses: 3, NoAnswer: 1, NotArchive: 1}); err != nil || one != want {
		t.Errorf("%+v, %v, want %+v", one, err, want)
	}
	two, err := archive.Write(t.Context(), dayOf(p, day2, dir))
	if want := (archive.Counts{Responses: 1, Revisits: 2}); err != nil || two != want {
		t.Errorf("%+v, %v, want %+v", two, err, want)
	}
	for date, want := range map[string]int{day1: 9, day2: 9} { // and one warcinfo per file
		if n, err := archive.Verify(t.Context(), filepath.Join(dir, date)); err != nil || n <= want {
			t.Errorf("%s: %d records, %v", date, n, err)
		}
	}
	first, second := records(t, filepath.Join(dir, day1)), records(t, filepath.Join(dir, day2))
	documents, _ := documents()
	for i := range documents {
		d := &documents[i]
		rec := first["response "+d.URL]
		if len(d.Raw) == 0 {
			if rec != nil {
				t.Errorf("%s has a record", d.URL)
			}
			continue
		}
		if rec == nil || string(rec.Block) != string(d.Raw) ||
			string(first["request "+d.URL].Block) != string(d.Request) {
			t.Errorf("%s is not there as it was fetched", d.URL)
		}
	}
	meta := string(first["metadata http://plain.test/"].Block)
	for _, want := range []string{"outlink: http://plain.test/to L ", "via: http://from.test/",
		"fetchTimeMs: 1000"} {
		if !strings.Contains(meta, want) {
			t.Errorf("no %s in %q", want, meta)
		}
	}
	for _, url := range []string{"http://chunked.test/", "http://plain.test/"} {
		was, now := first["response "+url].Fields, second["revisit "+url].Fields
		if now["WARC-Refers-To-Target-URI"] != was["WARC-Target-URI"] ||
			now["WARC-Refers-To-Date"] != was["WARC-Date"] || now["WARC-Payload-Digest"] != was["WARC-Payload-Digest"] ||
			was["WARC-Date"] == "" {
			t.Errorf("%v is no revisit of %v", now, was)
		}
	}
	if second["response http://other.test/"] == nil {
		t.Error("a 304 of what is not there has no record")
	}
}

func TestADayIsMadeOnceAndWhole(t *testing.T) {
	p, dir := newPlace(t), t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := archive.Write(ctx, dayOf(p, day1, dir)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	if err := os.MkdirAll(filepath.Join(dir, day1+".open", "warc", "of-a-run-that-was-killed"), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, want := range []error{nil, archive.ErrExists} {
		if _, err := archive.Write(t.Context(), dayOf(p, day1, dir)); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 || left[0].Name() != day1 {
		t.Errorf("%v is left, %v", left, err)
	}
}

func TestDamageIsFound(t *testing.T) {
	p := newPlace(t)
	for name, damage := range map[string]func(dir string) error{
		"a flipped byte": func(dir string) error {
			names, err := filepath.Glob(filepath.Join(dir, "warc", "*.warc.gz"))
			if err != nil {
				return err
			}
			data, err := os.ReadFile(names[0])
			if err != nil {
				return err
			}
			data[len(data)/2] ^= 1
			return os.WriteFile(names[0], data, 0o666)
		},
		"an index without a line": func(dir string) error {
			name := filepath.Join(dir, "index.cdxj")
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			_, rest, _ := strings.Cut(string(data), "\n")
			return os.WriteFile(name, []byte(rest), 0o666)
		},
	} {
		dir := t.TempDir()
		if _, err := archive.Write(t.Context(), dayOf(p, day1, dir)); err != nil {
			t.Fatal(err)
		}
		if err := damage(filepath.Join(dir, day1)); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Verify(t.Context(), filepath.Join(dir, day1)); err == nil {
			t.Errorf("%s is not found", name)
		}
	}
}

// robots.txt answers are stored for all collections; only those of the day's origins are written.
func TestRobotsTxtOfTheDaysOrigins(t *testing.T) {
	p, dir := newPlace(t), t.TempDir()
	exchange := func(url string, status int, fields, body string) batch.Document {
		d := answered(url, start, status, fields, body, body)
		d.Collection = "-"
		return d
	}
	const text = "User-agent: *\nDisallow: /private\n"
	rules := []batch.RobotsRecord{
		{Origin: "http://plain.test", RedirectTo: "http://robots.test/robots.txt",
			Exchange: exchange("http://plain.test/robots.txt", 301, "Location: http://robots.test/robots.txt\r\n", "")},
		{Origin: "http://plain.test", Status: 200, Body: []byte(text),
			Exchange: exchange("http://robots.test/robots.txt", 200, "Content-Type: text/plain\r\n", text)},
		{Origin: "http://chunked.test"}, // no answer
		{Origin: "http://of-another-collection.test", Status: 404,
			Exchange: exchange("http://of-another-collection.test/robots.txt", 404, "", "")},
	}
	err := batch.WriteFile(t.Context(), p, batch.RobotsFolder+"/"+day1+"/part-00000", func(emit batch.Emit) error {
		for i := range rules {
			if err := emit(rules[i].Key(), rules[i].Append(nil)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := archive.Write(t.Context(), dayOf(p, day1, dir)); err != nil || n.Responses != 3 || n.Robots != 2 {
		t.Errorf("%+v: %v", n, err)
	}
	if _, err := archive.Verify(t.Context(), filepath.Join(dir, day1)); err != nil {
		t.Error(err)
	}
	all := records(t, filepath.Join(dir, day1))
	for i := range rules[:2] {
		d := &rules[i].Exchange
		if rec := all["response "+d.URL]; rec == nil || string(rec.Block) != string(d.Raw) {
			t.Errorf("%s is not there as it was fetched", d.URL)
		}
	}
	if all["response http://of-another-collection.test/robots.txt"] != nil {
		t.Error("there is one of another collection's")
	}
}

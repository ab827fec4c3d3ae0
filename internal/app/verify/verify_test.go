package verify

import (
	"context"
	"crypto/sha1"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/page"
	"kumo/internal/base/stats"
	"kumo/internal/base/vfs"
	"kumo/internal/state/frontier"
	"kumo/internal/state/journal/file"
	"kumo/internal/state/recovery"
	"kumo/internal/state/seen"
	"kumo/internal/state/statefile"
	"kumo/internal/state/store"
	"kumo/internal/state/store/recordtest"
	"kumo/internal/state/store/storetest"
)

const (
	host    = "example.org"
	origin  = "https://" + host
	waiting = origin + "/waits"
	aside   = origin + "/aside"
	failed  = "https://dead.example/"
)

// A folder is that of a finished crawl with one pending URL. It has pages, one of them a duplicate, a robots.txt, a
// failed visit, and excluded and deferred URLs.
type folder struct {
	*recordtest.Files
	state *recovery.Rebuilt
	visit []*page.Record
}

var testTime = time.Date(2026, 11, 21, 3, 0, 0, 0, time.UTC)

func skip(path, rule string) *page.Skip {
	return &page.Skip{URL: origin + path, Host: host, Rule: rule, Why: "a reason", From: origin + "/", Depth: 1,
		Time: testTime}
}

// visits returns visits of a few pages; the fourth is the same as the first.
func (f *folder) visits() iter.Seq[*page.Record] {
	return func(yield func(*page.Record) bool) {
		all := []*page.Record{storetest.Record(0), storetest.Record(1), storetest.Record(2)}
		again, robots, dead := storetest.Record(3), storetest.Record(4), storetest.Record(5)
		again.Response.Raw, again.Response.HeadLen = all[0].Response.Raw, all[0].Response.HeadLen
		again.Response.Payload, again.Response.Body, again.Digest = all[0].Response.Payload, all[0].Response.Body,
			all[0].Digest
		robots.URL, robots.Robots, robots.Page, robots.Text = origin+"/robots.txt", true, nil, nil
		dead.URL, dead.Failure, dead.Response, dead.Page, dead.Text, dead.Digest = failed, page.DNS, nil, nil, nil,
			page.Digest{}
		robots.Fields, dead.Fields = nil, nil
		for _, rec := range append(all, again, robots, dead) {
			if rec == again {
				again.Revisit = &page.Ref{URL: all[0].URL, Time: all[0].Response.Start, ID: all[0].Location.ID}
			}
			f.visit = append(f.visit, rec)
			if !yield(rec) {
				return
			}
		}
	}
}

// newFolder creates a folder with its state.
func newFolder(t *testing.T, compression string) *folder {
	t.Helper()
	f := &folder{}
	out := []*page.Skip{skip("/forbidden", "robots"), skip("/deep", "depth")}
	f.Files = recordtest.Write(t, compression, f.visits(), out...)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	asides := []page.Skip{*skip("/aside", "depth")}
	must(statefile.WriteDeferred(vfs.OS, f.Dir, asides))
	s := &recovery.Rebuilt{Stats: stats.New()}
	var seenErr, digestsErr, frontierErr error
	s.Seen, seenErr = seen.Open(vfs.OS, f.Path("state/seen"), seen.Config{Depths: true})
	s.Digests, digestsErr = seen.OpenDigests(vfs.OS, f.Path("state/digests"), seen.Config{})
	s.Frontier, _, frontierErr = frontier.Open(frontier.Config{Disk: vfs.OS, Dir: f.Path("state/frontier")})
	must(errors.Join(seenErr, digestsErr, frontierErr))
	know := func(url string, state seen.State) { s.Seen.InsertKnown([]seen.URL{{URL: url, Depth: 1, State: state}}) }
	for _, rec := range f.visit {
		f.count(s.Stats, rec)
		if rec.Robots {
			continue
		}
		know(rec.URL, seen.Known)
		m := seen.Meta{Fetched: rec.Time.Truncate(time.Second)}
		if rec.Response != nil {
			m.Status, m.Digest = rec.Response.Status, rec.Digest
		}
		s.Seen.UpdateMeta(rec.URL, m)
		if rec.Response != nil && rec.Revisit == nil {
			s.Digests.Put(rec.Digest, seen.Ref{URL: rec.URL, Time: rec.Response.Start, ID: rec.Location.ID})
		}
	}
	for _, k := range out {
		know(k.URL, seen.Known)
		s.Stats.Skipped(k.Rule)
	}
	know(waiting, seen.Known)
	know(aside, seen.Deferred)
	s.Frontier.Push(host, frontier.Item{URL: waiting, Depth: 1})
	s.Marks = f.Marks
	if size, err := vfs.OS.Size(f.Path("state/deferred")); err == nil {
		s.Marks = append(s.Marks, store.Mark{Name: filepath.Join("state", "deferred"), Length: size})
	}
	must(s.Write(t.Context()))
	known := s.Seen.Len()
	must(errors.Join(s.Seen.Close(), s.Digests.Close(), s.Frontier.Close()))
	must(os.MkdirAll(f.Path("state/journal"), 0o700))
	r := &stats.Report{Crawl: "test", Ended: "done", Started: testTime, Stopped: testTime.Add(time.Minute),
		Known: int(known), Waiting: 1, Hosts: 2}
	r.Fill(s.Stats.Snapshot(), 0, 0)
	text, err := json.Marshal(r)
	must(err)
	f.Put(reportName, string(text))
	f.state = s
	return f
}

func (f *folder) count(c *stats.Counter, rec *page.Record) {
	switch {
	case rec.Robots:
		c.RobotsFetched(rec.Response.RawLen())
	case rec.Response == nil:
		c.Visited(stats.Visit{Host: "dead.example", Failure: string(rec.Failure), Took: rec.Took})
	default:
		c.Visited(stats.Visit{Host: host, Status: rec.Response.Status, Type: rec.Page.Type, Bytes: rec.Response.RawLen(),
			Took:      rec.Took,
			Duplicate: rec.Revisit != nil})
	}
}

// run verifies the folder. Errors from opening parts are reported as by package wire.
func (f *folder) run(cfg Config) (faults []Fault, report *Report) {
	f.Helper()
	view := vfs.NewOverlay(vfs.OS)
	p := Parts{Dir: f.Dir, Disk: vfs.OS, View: view}
	broken := func(check string, err error) {
		if err != nil {
			p.Broken = append(p.Broken, Fault{Check: check, File: "state", Offset: -1, What: err.Error()})
		}
	}
	j, err := file.Open(view, f.Path("state/journal"), file.Config{})
	if broken(checkJournal, err); err == nil {
		p.Journal = j
		defer j.Close()
	}
	db, err := seen.Open(view, f.Path("state/seen"), seen.Config{})
	if broken(checkSeen, err); err == nil {
		p.Seen = db
		defer db.Close()
	}
	d, err := seen.OpenDigests(view, f.Path("state/digests"), seen.Config{})
	if broken(checkDigests, err); err == nil {
		p.Digests = d
		defer d.Close()
	}
	queues, note, err := frontier.Open(frontier.Config{Disk: view, Dir: f.Path("state/frontier")})
	if broken(checkFrontier, err); err == nil {
		defer queues.Close()
	}
	if len(p.Broken) == 0 {
		p.State, err = recovery.Recover(j, recovery.Views{Seen: db, Digests: d, Frontier: queues, Note: note,
			Abandoned: statefile.OpenAbandoned(view, f.Dir)})
		broken(checkJournal, err)
	}
	if p.State != nil {
		if a, err := statefile.OpenDeferred(view, f.Dir, p.State.Marks); err == nil { // removes uncommitted data
			defer a.Close()
		}
	}
	cfg.Temp = f.TempDir()
	cfg.Fault = func(x Fault) { faults = append(faults, x) }
	report, err = Run(f.Context(), p, cfg)
	if err != nil {
		f.Fatal(err)
	}
	return faults, report
}

func (f *folder) wantWhole() *Report {
	f.Helper()
	faults, report := f.run(Config{})
	for _, x := range faults {
		f.Errorf("%s: %s", x.Check, &x)
	}
	return report
}

func TestAWholeCrawlHasNoFaults(t *testing.T) {
	for _, compression := range []string{"gzip", "zstd"} {
		t.Run(compression, func(t *testing.T) {
			f := newFolder(t, compression)
			report := f.wantWhole()
			counts := map[string]int64{}
			for _, c := range report.Checks {
				for _, n := range c.Counts {
					counts[c.Name+" "+n.Unit] = n.N
				}
			}
			for what, want := range map[string]int64{"warc files": 1, "warc records": 16, "pages pages": 4,
				"crawl.log visits": 6, "text texts": 4, "fields records": 4,
				"skipped lines": 2, "frontier URLs waiting": 1, "deferred URLs": 1, "digests digests": 3} {
				if counts[what] != want {
					t.Errorf("%s: %d, want %d; in all %v", what, counts[what], want, counts)
				}
			}
			if report.Faults != 0 {
				t.Errorf("%d faults", report.Faults)
			}
		})
	}
}

// lineOf returns the offset of the line that contains a word.
func lineOf(text, word string) (at int64) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, word) {
			return at
		}
		at += int64(len(line))
	}
	return -1
}

func without(word string) func(string) string {
	return func(text string) string {
		at := lineOf(text, word)
		end := at + int64(strings.Index(text[at:], "\n")+1)
		return text[:at] + text[end:]
	}
}

func replaced(old, by string) func(string) string {
	return func(text string) string {
		if !strings.Contains(text, old) {
			panic("there is no " + old + " in " + text)
		}
		return strings.Replace(text, old, by, 1)
	}
}

func twice(word string) func(string) string {
	return func(text string) string {
		at := lineOf(text, word)
		end := at + int64(strings.Index(text[at:], "\n")+1)
		return text[:end] + text[at:end] + text[end:]
	}
}

func appended(more string) func(string) string {
	return func(text string) string { return text + more }
}

func half(text string) string { return text[:len(text)/2] }

// Each kind of damage is found by the appropriate check.
func TestDamageIsNamed(t *testing.T) {
	page1 := storetest.Record(1).URL
	for _, c := range []struct {
		about, name string // "warc" and "cdxj" mean the WARC file and its index
		change      func(string) string
		check, what string // of at least one fault
	}{
		{"a WARC file cut short", "warc", half, checkWARC, "the file ends within a record"},
		{"a WARC file cut short, for the journal", "warc", half, checkWARC, "the journal records"},
		{"a WARC file that is not here", "warc", nil, checkWARC, "the file is missing"},
		{"something else in a WARC file", "warc", func(s string) string { return "none" + s }, checkWARC, ""},
		{"an index that is not here", "cdxj", nil, checkCDXJ, "the index is missing"},
		{"a lost line of an index", "cdxj", without("page-00001"), checkCDXJ, "no line in the index of its file"},
		{"a line of the index twice", "cdxj", twice("page-00001"), checkCDXJ, "a second line for the same record"},
		{"a line of the index of another file", "cdxj", replaced(`"filename":"test`, `"filename":"rest`), checkCDXJ,
			"has its own index"},
		{"another length in the index", "cdxj", replaced(`"length":"`, `"length":"1`), checkCDXJ, "the length differs"},
		{"another status in the index", "cdxj", replaced(`"status":"200"`, `"status":"201"`), checkCDXJ, "the status differs"},
		{"no line in the index", "cdxj", appended("zzz\n"), checkCDXJ, ""},
		{"an index of all that lacks a line", mergedIndex, without("page-00001"), checkCDXJ, "no line in " + mergedIndex},
		{"a line of the index of all twice", mergedIndex, twice("page-00001"), checkCDXJ, "a second line"},
		{"an index of all that says other things", mergedIndex, replaced(`"status":"200"`, `"status":"201"`), checkCDXJ,
			"the line differs from that in"},

		{"a page's line lost", "pages.jsonl", without(page1), checkWARC, "no line of pages.jsonl refers to the record"},
		{"a page's line lost, for its visit", "pages.jsonl", without(page1), checkLog,
			"pages.jsonl has no line of this visit"},
		{"a page's line lost, for its text", "pages.jsonl", without(page1), checkText,
			"pages.jsonl has no line of this visit"},
		{"a page's line twice", "pages.jsonl", twice(page1), checkPages, "a second line for the same record"},
		{"another title", "pages.jsonl", replaced(`"title":"A page"`, `"title":"B page"`), checkPages, "the title, charset"},
		{"another status", "pages.jsonl", replaced(`"status":200`, `"status":404`), checkPages, "the status differs"},
		{"no revisit", "pages.jsonl", replaced(`"revisit"`, `"sniffed"`), checkPages, "the revisit differs"},
		{"another place", "pages.jsonl", replaced(`"offset":`, `"offset":1`), checkPages, "has no record of it at byte"},
		{"a page's line without its digest", "pages.jsonl", replaced(`"digest":"sha1:`, `"digest":"md5:`), checkPages,
			"lacks its digest"},
		{"a page's line without its duration", "pages.jsonl", replaced(`"total_ms":`, `"total_mS":`), checkPages,
			"lacks total_ms"},
		{"no JSON", "pages.jsonl", appended("{\n"), checkPages, ""},
		{"a torn line", "text.jsonl", half, checkText, ""},
		{"a text of no page", "text.jsonl", replaced(page1, page1+"x"), checkText, "pages.jsonl has no line of this visit"},
		{"a torn record", "fields.jsonl", half, checkFields, ""},
		{"a record of no page", "fields.jsonl", replaced(page1, page1+"x"), checkFields,
			"pages.jsonl has no line of this visit"},
		{"a record of another place", "fields.jsonl", replaced(`"offset":`, `"offset":1`), checkFields,
			"another location of the page's record"},
		{"no record", "fields.jsonl", replaced(`"rule":"rule"`, `"rule":""`), checkFields, "lacks its URL, rule"},
		{"no text", "text.jsonl", replaced(`{"url"`, `["url"`), checkText, "invalid"},

		{"a visit's line lost", "crawl.log", without(page1), checkPages, "crawl.log has no line of this visit"},
		{"a visit's line lost, for the database", "crawl.log", without(page1), checkSeen, "but crawl.log has no visit then"},
		{"a robots.txt's line lost", "crawl.log", without("/robots.txt"), checkWARC,
			"match a visit for robots.txt in crawl.log"},
		{"another path", "crawl.log", replaced(" L ", " LL "), checkLog, "type, path, via, seed or duration differ"},
		{"a visit that has no digest", "crawl.log", replaced("sha1:", "sha2:"), checkLog, "is not a digest"},
		{"half a line", "crawl.log", replaced(" #000 ", " "), checkLog, "fields, want 12"},

		{"a skip lost", "skipped.jsonl", without("/forbidden"), checkURLs, "it is lost"},
		{"a skip lost, for the counters", "skipped.jsonl", without("/forbidden"), checkReport, "skipped by robots"},
		{"a skip twice", "skipped.jsonl", twice("/forbidden"), checkSkipped, "a second line for the same exclusion"},
		{"a skip of what was fetched", "skipped.jsonl", replaced(origin+"/forbidden", page1), checkSkipped,
			"it was excluded, but was fetched"},
		{"a skip of another host", "skipped.jsonl", replaced(`"host":"example.org"`, `"host":"example.com"`), checkSkipped,
			"is not that of"},
		{"a skip without its rule", "skipped.jsonl", replaced(`"rule":"robots"`, `"rule":""`), checkSkipped,
			"lacks its URL, rule or time"},
		{"a skip of nobody", "skipped.jsonl",
			appended(`{"url":"https://x.example/","host":"x.example","rule":"robots","why":"w","from":"f","depth":1,` +
				`"time":"2026-11-21T03:00:00.000Z"}` + "\n"), checkSeen, "is not in the URL database"},

		{"what was set aside lost", "state/deferred", nil, checkDeferred, "the journal records"},
		{"what was set aside cut short", "state/deferred", half, checkDeferred, ""},
		{"a flipped byte in what was set aside", "state/deferred", replaced("a reason", "A reason"), checkDeferred,
			"checksum"},

		{"another count", reportName, replaced(`"pages":4`, `"pages":5`), checkReport, "pages: recorded 5, counted 4"},
		{"another number of known URLs", reportName, replaced(`"urls_known":`, `"urls_known":1`), checkReport, "urls_known"},
		{"another number of waiting URLs", reportName, replaced(`"urls_waiting":1`, `"urls_waiting":9`), checkReport,
			"urls_waiting"},
		{"a report of another journal", reportName, replaced(`"journal":0`, `"journal":99`), checkReport,
			"but the journal ends at 0"},
	} {
		t.Run(c.about, func(t *testing.T) {
			f := newFolder(t, "gzip")
			name := c.name
			switch name {
			case "warc":
				name = f.WARC
			case "cdxj":
				name = f.CDXJ
			}
			if c.change == nil {
				if err := os.Remove(f.Path(name)); err != nil {
					t.Fatal(err)
				}
			} else {
				f.Put(name, c.change(f.Text(name)))
				f.commit(name)
			}
			faults, _ := f.run(Config{})
			if !slices.ContainsFunc(faults, func(x Fault) bool {
				return x.Check == c.check &&
					strings.Contains(x.What, c.what)
			}) {
				t.Errorf("no fault of %s says %q", c.check, c.what)
				for _, x := range faults {
					t.Logf("%s: %s", x.Check, &x)
				}
			}
		})
	}
}

// Damaged files of the state are named, and the rest is still checked.
func TestDamagedStateIsNamed(t *testing.T) {
	for _, c := range []struct{ dir, check string }{{"state/seen", checkSeen}, {"state/digests", checkDigests},
		{"state/frontier", checkFrontier}} {
		f := newFolder(t, "gzip")
		names, err := filepath.Glob(f.Path(c.dir) + "/*")
		if err != nil || len(names) == 0 {
			t.Fatal(names, err)
		}
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for i := len(b) / 3; i < 2*len(b)/3; i++ {
				b[i] ^= 0x55
			}
			if err := os.WriteFile(name, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		faults, report := f.run(Config{})
		if !slices.ContainsFunc(faults, func(x Fault) bool { return x.Check == c.check }) ||
			report.Faults != int64(len(faults)) {
			t.Errorf("%s: %v", c.dir, faults)
		}
	}
}

// Pending and known URLs must be consistent with the fetched ones.
func TestWhatIsKnownMustFitToWhatWasFetched(t *testing.T) {
	for _, c := range []struct {
		about       string
		change      func(*recovery.Rebuilt)
		check, what string
	}{
		{"it waits and is not known", func(s *recovery.Rebuilt) {
			s.Frontier.Push(host, frontier.Item{URL: origin + "/new"})
		},
			checkFrontier, "not in the URL database"},
		{"it waits and was fetched", func(s *recovery.Rebuilt) {
			s.Frontier.Push(host,
				frontier.Item{URL: storetest.Record(1).URL})
		}, checkFrontier,
			"but fetched at"},
		{"it waits and is set aside", func(s *recovery.Rebuilt) { s.Frontier.Push(host, frontier.Item{URL: aside}) },
			checkFrontier, "but excluded in the URL database"},
		{"it is known and nowhere", func(s *recovery.Rebuilt) {
			s.Seen.InsertKnown([]seen.URL{{URL: origin + "/lost",
				State: seen.Known}})
		}, checkURLs, "it is lost"},
		{"it is set aside and nobody says why", func(s *recovery.Rebuilt) {
			s.Seen.InsertKnown([]seen.URL{{URL: origin + "/why",
				State: seen.Deferred}})
		}, checkURLs,
			"has the reason"},
		{"the database has another status", func(s *recovery.Rebuilt) {
			s.Seen.UpdateMeta(storetest.Record(1).URL, seen.Meta{Fetched: storetest.Record(1).Time.Truncate(time.Second),
				Status: 404})
		}, checkSeen, "the URL database 404"},
		{"a digest of no record", func(s *recovery.Rebuilt) {
			s.Digests.Put(sha1.Sum([]byte("x")), seen.Ref{URL: origin + "/none", Time: testTime, ID: "urn:uuid:1"})
		}, checkDigests, "that is in no WARC file"},
	} {
		t.Run(c.about, func(t *testing.T) {
			f := newFolder(t, "gzip")
			f.reopened(c.change)
			faults, _ := f.run(Config{})
			if !slices.ContainsFunc(faults, func(x Fault) bool {
				return x.Check == c.check &&
					strings.Contains(x.What, c.what)
			}) {
				t.Errorf("no fault of %s says %q: %v", c.check, c.what, faults)
			}
		})
	}
}

// commit marks all data of a grown file as committed in the journal.
func (f *folder) commit(name string) {
	f.Helper()
	for i := range f.state.Marks {
		if m := &f.state.Marks[i]; m.Name == filepath.FromSlash(name) {
			m.Length = max(m.Length, int64(len(f.Text(name))))
			f.reopened(func(*recovery.Rebuilt) {})
		}
	}
}

// reopened changes the state.
func (f *folder) reopened(change func(*recovery.Rebuilt)) {
	f.Helper()
	s := f.state
	var seenErr, digestsErr, frontierErr error
	s.Seen, seenErr = seen.Open(vfs.OS, f.Path("state/seen"), seen.Config{Depths: true})
	s.Digests, digestsErr = seen.OpenDigests(vfs.OS, f.Path("state/digests"), seen.Config{})
	s.Frontier, _, frontierErr = frontier.Open(frontier.Config{Disk: vfs.OS, Dir: f.Path("state/frontier")})
	if err := errors.Join(seenErr, digestsErr, frontierErr); err != nil {
		f.Fatal(err)
	}
	change(s)
	if err := errors.Join(s.Write(f.Context()), s.Seen.Close(), s.Digests.Close(), s.Frontier.Close()); err != nil {
		f.Fatal(err)
	}
}

// Files that were moved on purpose are no fault, nor is uncommitted data after a kill.
func TestWhatIsNoFaultIsNoted(t *testing.T) {
	f := newFolder(t, "gzip")
	if err := os.Remove(f.Path(f.WARC)); err != nil {
		t.Fatal(err)
	}
	faults, report := f.run(Config{Moved: true})
	for _, x := range faults {
		if x.Check != checkCDXJ { // the file can be rebuilt
			t.Errorf("moved on purpose: %s: %s", x.Check, &x)
		}
	}
	if !noted(report, checkWARC, "not verified") {
		t.Error("it is not said that the file was not verified")
	}

	f = newFolder(t, "gzip")
	for _, name := range []string{"pages.jsonl", "crawl.log", "state/deferred"} {
		f.Put(name, f.Text(name)+"not committed")
	}
	report = f.wantWhole()
	for _, check := range []string{checkPages, checkLog} {
		if !noted(report, check, "bytes are not committed yet") {
			t.Errorf("of %s it is not noted what the next start cuts", check)
		}
	}
	if x := (&Fault{File: "a", Offset: 3, URL: "u", What: "w", Remedy: "r"}).String(); x != "a at byte 3: u: w; r" {
		t.Errorf("%q", x)
	}
}

func noted(r *Report, check, what string) bool {
	for _, c := range r.Checks {
		if c.Name == check && slices.ContainsFunc(c.Notes, func(x Fault) bool { return strings.Contains(x.What, what) }) {
			return true
		}
	}
	return false
}

// An interrupted is a disk on which a verification is interrupted while it reads a file.
type interrupted struct {
	vfs.FS
	name string
	stop context.CancelFunc
}

func (d interrupted) OpenAt(name string) (vfs.ReaderAt, error) {
	f, err := d.FS.OpenAt(name)
	if err == nil && strings.Contains(name, d.name) {
		return interruptedFile{f, d.stop}, nil
	}
	return f, err
}

func (d interrupted) Open(name string) (io.ReadCloser, error) {
	f, err := d.FS.Open(name)
	if err == nil && strings.Contains(name, d.name) {
		return interruptedFile{f.(vfs.ReaderAt), d.stop}, nil
	}
	return f, err
}

type interruptedFile struct {
	vfs.ReaderAt
	stop context.CancelFunc
}

func (f interruptedFile) Read([]byte) (int, error) { return f.ReadAt(nil, 0) }

func (f interruptedFile) ReadAt([]byte, int64) (int, error) {
	f.stop()
	return 0, context.Canceled
}

// TestWhatWasNotReadIsNoFault interrupts a verification while it reads a file. This is an error, but not a fault of the
// file.
func TestWhatWasNotReadIsNoFault(t *testing.T) {
	f := newFolder(t, "gzip")
	for _, name := range []string{".warc", "pages.jsonl", "crawl.log", "skipped.jsonl", "text.jsonl", ".cdxj"} {
		ctx, stop := context.WithCancel(t.Context())
		_, err := Run(ctx, Parts{Dir: f.Dir, Disk: interrupted{vfs.OS, name, stop},
			View: vfs.NewOverlay(vfs.OS), FilesOnly: true}, Config{Temp: t.TempDir(),
			Fault: func(x Fault) { t.Errorf("interrupted at %s, it says of %s: %s", name, x.File, &x) }})
		if stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("interrupted at %s, it ends with %v", name, err)
		}
	}
}

func TestLittleMemoryFindsTheSame(t *testing.T) {
	f := newFolder(t, "gzip")
	f.Put("crawl.log", without(storetest.Record(1).URL)(f.Text("crawl.log")))
	much, _ := f.run(Config{})
	little, _ := f.run(Config{Memory: 300})
	if fmt.Sprint(much) != fmt.Sprint(little) || len(much) == 0 {
		t.Errorf("with little memory %v, with much %v", little, much)
	}
}

// If the database disagrees with an unchanged page, the message mentions that it is unchanged.
func TestAPageAsItWasKeepsItsStatus(t *testing.T) {
	page, own := digest{1}, digest{2}
	visit := func(status int, d digest) *fact {
		return &fact{File: -1, Time: int64(status), Status: status, Digest: d}
	}
	for _, c := range []struct {
		about  string
		visits []*fact
		status int
		digest digest
		want   string
	}{
		{"as it was", []*fact{visit(200, page), visit(304, page)}, 200, page, ""},
		{"as it was, and lost", []*fact{visit(200, page), visit(304, page)}, 304, page,
			"status 304 (unchanged, with status 200)"},
		{"said unasked", []*fact{visit(304, own), visit(304, own)}, 304, own, ""},
		{"said unasked of a page", []*fact{visit(200, page), visit(304, own)}, 304, own, ""},
		{"said unasked, and lost", []*fact{visit(200, page), visit(304, own)}, 200, page, "status 304 and"},
	} {
		var faults []Fault
		v := &verifier{ctx: t.Context(), findings: &findings{ctx: t.Context(), checks: map[string]*Check{checkSeen: {},
			checkLog: {}}, onFault: func(x Fault) { faults = append(faults, x) }}}
		g := &group{v: v, url: origin + "/", lastVisitFound: true}
		g.entry = &seen.Entry{Meta: seen.Meta{Fetched: testTime, Status: c.status, Digest: c.digest}}
		for _, f := range c.visits {
			g.visit(f)
		}
		g.checkEntry()
		if got := fmt.Sprint(faults); len(faults) > 0 != (c.want != "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %s", c.about, got)
		}
	}
}

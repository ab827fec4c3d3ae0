package ui

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"kumo/internal/app/lookup"
	"kumo/internal/archive/audit"
	"kumo/internal/archive/export/table"
	"kumo/internal/base/stats"
)

// An AuditFunc audits a crawl and writes the tables to an empty folder. It reports its progress in words.
type AuditFunc func(ctx context.Context, to string, progress func(string)) (*audit.Summary, error)

// audits runs audits of crawls in the background, one at a time: each reads all files of a crawl.
type audits struct {
	done context.Context
	slot chan struct{} // held by the running audit

	mu   sync.Mutex // guards the fields below
	temp string     // folder with the tables; "" until the first audit
	last map[string]*crawlAudit
}

func newAudits(done context.Context) *audits {
	return &audits{done: done, slot: make(chan struct{}, 1), last: map[string]*crawlAudit{}}
}

// A crawlAudit is the last audit of a crawl. Copies may be read without a lock.
type crawlAudit struct {
	Summary  *audit.Summary // nil: no audit was successful yet
	Time     time.Time      // end of the audit
	Running  bool
	Progress string // of the running audit
	Wrong    string // error of the last audit

	dir string // its tables
	of  time.Time
}

// get returns the last audit of a crawl, and starts one if it is wanted, or if there is none of a crawl that ended at a
// time (zero: it runs).
func (a *audits) get(c *crawl, ended time.Time, wanted bool) crawlAudit {
	a.mu.Lock()
	defer a.mu.Unlock()
	x := a.last[c.name]
	if x == nil {
		x = &crawlAudit{}
		a.last[c.name] = x
	}
	outdated := !ended.IsZero() && !x.of.Equal(ended)
	if !x.Running && (wanted || outdated) && a.done.Err() == nil {
		x.Running, x.Progress, x.of = true, "waiting for another audit", ended
		go a.run(c, x)
	}
	return *x
}

// run audits a crawl.
func (a *audits) run(c *crawl, x *crawlAudit) {
	var summary *audit.Summary
	dir, err := "", context.Cause(a.done)
	select {
	case a.slot <- struct{}{}:
		defer func() { <-a.slot }()
		if dir, err = a.newFolder(); err == nil {
			summary, err = c.audit(a.done, dir, func(words string) {
				a.mu.Lock()
				defer a.mu.Unlock()
				x.Progress = words
			})
		}
	case <-a.done.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	x.Running, x.Progress, x.Wrong = false, "", ""
	old := dir
	if err == nil {
		old, x.dir, x.Summary, x.Time = x.dir, dir, summary, time.Now()
	} else {
		x.Wrong = err.Error()
	}
	if old != "" {
		_ = os.RemoveAll(old) // at the latest, close removes it
	}
}

// newFolder returns a new folder for tables.
func (a *audits) newFolder() (string, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.temp == "" {
		temp, err := os.MkdirTemp("", "kumo-page-")
		if err != nil {
			return "", err
		}
		a.temp = temp
	}
	return os.MkdirTemp(a.temp, "audit-")
}

// close removes the tables, after the context of the audits has ended.
func (a *audits) close() {
	a.slot <- struct{}{} // wait for the running audit
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.temp != "" {
		_ = os.RemoveAll(a.temp) // temporary files
	}
}

// auditPages serves the tables of audits. Its fields do not change.
type auditPages struct {
	crawls *crawlSet
	audits *audits
	keys   *signer // for forms
	out    *responder
}

func (h *auditPages) views() map[string]view {
	return map[string]view{
		"/crawls/{crawl}/audit":         withPathTarget(h.find, h.summaryPage),
		"/crawls/{crawl}/audit/{table}": withPathTarget(h.find, h.tablePage),
	}
}

// find returns the crawl in a path, if it can be audited.
func (h *auditPages) find(r *http.Request) (*crawl, error) {
	c, err := h.crawls.find(r)
	if err == nil && c.audit == nil {
		err = &problem{http.StatusNotFound, "This crawl cannot be audited here",
			"its files are not in a folder of this machine"}
	}
	return c, err
}

// endOf returns when a crawl has ended; zero while it runs.
func endOf(ctx context.Context, c *crawl) (time.Time, error) {
	o, err := c.status.overview(ctx)
	if err != nil || o.runs() {
		return time.Time{}, err
	}
	if o.Stopped.IsZero() { // it was killed
		return time.Unix(1, 0), nil
	}
	return o.Stopped, nil
}

// An auditTable is a line of the summary.
type auditTable struct {
	audit.TableSummary
	List  bool
	Kinds string // kinds of problems with their numbers
}

func (h *auditPages) summaryPage(c *crawl, r *http.Request) (*filled, error) {
	ended, err := endOf(r.Context(), c)
	if err != nil {
		return nil, err
	}
	p := struct {
		top
		crawlAudit
		Tables []auditTable
		Runs   bool
		Token  string
	}{top: h.out.top(c, "Audit", "audit"), crawlAudit: h.audits.get(c, ended, false), Runs: ended.IsZero(),
		Token: h.keys.sign("act")}
	p.Again = p.Running
	if p.Summary != nil {
		for i, t := range p.Summary.Tables {
			p.Tables = append(p.Tables, auditTable{t, audit.Tables[i].List, kindsText(t.Problems)})
		}
	}
	return &filled{"audit", p}, nil
}

// kindsText returns the most frequent kinds of problems.
func kindsText(problems map[string]int64) string {
	kinds := slices.SortedFunc(maps.Keys(problems), func(a, b string) int {
		return cmp.Or(cmp.Compare(problems[b], problems[a]), cmp.Compare(a, b))
	})
	var parts []string
	for i, kind := range kinds {
		if i == maxCounts/2 {
			parts = append(parts, "…")
			break
		}
		parts = append(parts, kind+": "+stats.Grouped(problems[kind]))
	}
	return strings.Join(parts, ", ")
}

// submit starts an audit.
func (h *auditPages) submit(w http.ResponseWriter, r *http.Request) {
	c, err := h.find(r)
	if err != nil {
		h.out.fail(w, r, err)
		return
	}
	if err := r.ParseForm(); err != nil || !same(r.PostForm.Get("csrf"), h.keys.sign("act")) {
		h.out.fail(w, r, errOldForm)
		return
	}
	ended, err := endOf(r.Context(), c)
	if err != nil {
		h.out.fail(w, r, err)
		return
	}
	h.audits.get(c, ended, true)
	http.Redirect(w, r, "/crawls/"+url.PathEscape(c.name)+"/audit", http.StatusSeeOther)
}

// A tableCell is a cell of a table.
type tableCell struct {
	Text string
	URL  bool
}

// open opens a table of the crawl's last audit.
func (h *auditPages) open(c *crawl, r *http.Request) (*os.File, *audit.Table, error) {
	name := r.PathValue("table")
	i := slices.IndexFunc(audit.Tables[:], func(t audit.Table) bool { return t.Name == name })
	if i < 0 {
		return nil, nil, &problem{http.StatusNotFound, "There is no such table", "see the summary of the audit"}
	}
	h.audits.mu.Lock()
	defer h.audits.mu.Unlock()
	x := h.audits.last[c.name]
	if x == nil || x.dir == "" {
		return nil, nil, &problem{http.StatusNotFound, "There is no audit yet", "the summary of the audit starts one"}
	}
	f, err := os.Open(filepath.Join(x.dir, audit.Tables[i].File()))
	return f, &audit.Tables[i], err
}

const auditRows = 100 // per page

func (h *auditPages) tablePage(c *crawl, r *http.Request) (*filled, error) {
	at, err := cursorOf(r)
	if err != nil {
		return nil, err
	}
	file, t, err := h.open(c, r)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	p := struct {
		top
		Table *audit.Table
		Rows  [][]tableCell
		More  string
		First bool
	}{top: h.out.top(c, t.Title, "audit"), Table: t, First: at == lookup.Last}
	rows, next, err := readRows(file, t, at, auditRows)
	if err != nil {
		return nil, err
	}
	p.Rows = rows
	if next > 0 {
		p.More = moreLink(r, &next)
	}
	return &filled{"audittable", p}, nil
}

// readRows reads up to n rows from an offset of a CSV file; lookup.Last: from the first row. next is the offset after
// them, 0 at the end.
func readRows(file *os.File, t *audit.Table, at int64, n int) (rows [][]tableCell, next int64, err error) {
	from := max(at, 0)
	if at == lookup.Last {
		from = 0
	}
	if _, err := file.Seek(from, io.SeekStart); err != nil {
		return nil, 0, err
	}
	in := csv.NewReader(file)
	in.ReuseRecord, in.FieldsPerRecord = true, len(t.Columns)
	if from == 0 {
		if _, err := in.Read(); err != nil { // the names of the columns
			return nil, 0, err
		}
	}
	for len(rows) < n {
		cells, err := in.Read()
		switch {
		case errors.Is(err, io.EOF):
			return rows, 0, nil
		case err != nil:
			return nil, 0, badRequest("cursor is %d: expected \"next\" of an answer", at)
		}
		row := make([]tableCell, len(cells))
		for i, text := range cells {
			if bare, is := strings.CutPrefix(text, "'"); is && table.Cell(bare) == text {
				text = bare // marked for spreadsheets only
			}
			row[i] = tableCell{strings.Clone(text), strings.HasPrefix(text, "http://") || strings.HasPrefix(text, "https://")}
			row[i].URL = row[i].URL && !strings.Contains(text, " ")
		}
		rows = append(rows, row)
	}
	return rows, from + in.InputOffset(), nil
}

// download serves a table as CSV.
func (h *auditPages) download(w http.ResponseWriter, r *http.Request) {
	c, err := h.find(r)
	if err != nil {
		h.out.fail(w, r, err)
		return
	}
	file, t, err := h.open(c, r)
	if err != nil {
		h.out.fail(w, r, err)
		return
	}
	defer file.Close()
	attach(w, c.name+"-"+t.File(), "text/csv; charset=utf-8")
	http.ServeContent(&patientWriter{w}, r, "", time.Time{}, file)
}

// attach sets the header fields of a download.
func attach(w http.ResponseWriter, name, kind string) {
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Disposition", "attachment; filename="+strconv.Quote(name))
}

// A patientWriter gives a client time for each part of a long answer.
type patientWriter struct{ http.ResponseWriter }

func (w *patientWriter) Write(b []byte) (int, error) {
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTimeout))
	return w.ResponseWriter.Write(b)
}

// An ExportFunc writes an export of a crawl that is not running.
type ExportFunc func(ctx context.Context, format string, w io.Writer) error

// downloads serves exports of crawls that have ended, as they are written. Its fields do not change.
type downloads struct {
	crawls *crawlSet
	slots  chan struct{} // a slot for each running export
	out    *responder
}

const maxDownloads = 2 // concurrent exports

// downloadTypes are the media types of the exports by format.
var downloadTypes = map[string]string{"wacz": "application/wacz", "csv": "text/csv; charset=utf-8"}

func (h *downloads) serve(w http.ResponseWriter, r *http.Request) {
	c, err := h.crawls.find(r)
	form := r.PathValue("format")
	kind := downloadTypes[form]
	switch {
	case err != nil:
	case kind == "" || c.export == nil:
		err = &problem{http.StatusNotFound, "There is no such download", "there are wacz and csv"}
	default:
		err = h.check(r, c)
	}
	if err != nil {
		h.out.fail(w, r, err)
		return
	}
	select {
	case h.slots <- struct{}{}:
		defer func() { <-h.slots }()
	default:
		h.out.fail(w, r, &problem{http.StatusServiceUnavailable, "Too many downloads at once",
			"try again when others are done"})
		return
	}
	to := &lateHeader{patientWriter: patientWriter{w}, set: func() { attach(w, c.name+"."+form, kind) }}
	if err := c.export(r.Context(), form, to); err != nil {
		if !to.begun {
			h.out.fail(w, r, err)
			return
		}
		h.out.log.Warn("web page: a download failed", "crawl", c.name, "format", form, "error", err.Error())
		panic(http.ErrAbortHandler) // the client must not take the part for the whole
	}
	if !to.begun {
		to.set()
	}
}

// check returns an error if the crawl is running.
func (h *downloads) check(r *http.Request, c *crawl) error {
	o, err := withPatience(r.Context(), c.queue, listPatience, c.status.overview)
	if err == nil && o.runs() {
		err = &problem{http.StatusConflict, "The crawl is running", "its files are complete when it has ended"}
	}
	return err
}

// A lateHeader sets the header fields of a download before its first byte: until then, an error can be reported.
type lateHeader struct {
	patientWriter
	set   func()
	begun bool
}

func (w *lateHeader) Write(b []byte) (int, error) {
	if !w.begun {
		w.begun = true
		w.set()
	}
	n, err := w.patientWriter.Write(b)
	if err != nil {
		err = fmt.Errorf("send to the client: %w", err)
	}
	return n, err
}

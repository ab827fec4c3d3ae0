package ui

import (
	"cmp"
	"context"
	"encoding/base32"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"kumo/internal/batch"
	"kumo/internal/batch/inspect"
	"kumo/internal/place"
	"kumo/internal/weburl"
)

// A Batch is a place of batch crawls that is shown.
type Batch struct {
	Name  string // as people call it: a folder, or a URL
	Place place.Place
}

// batches are the batch crawls of a place, with what was last read of it. Days that are done do not change, so that what
// they came to is read once; who runs a day meanwhile is seen by the time of the day's state.
type batches struct {
	name, where string
	place       place.Place
	done        context.Context
	queue       *queue
	readers     chan struct{} // whoever reads of the place has one
	look        chan struct{} // whoever lists collections has it, which guards what is below

	listed []*inspect.Collection
	left   string // what could not be read
	time   time.Time
	took   time.Duration

	mu   sync.Mutex // guards days
	days map[dayKey]*inspect.Brief
}

type dayKey struct {
	dir, date string
	changed   time.Time
}

const (
	placeReaders = 16
	keptDays     = 50_000 // days whose numbers are kept
)

func newBatches(done context.Context, name string, b Batch, q *queue) *batches {
	return &batches{name: name, where: b.Name, place: b.Place, done: done, queue: q, readers: make(chan struct{}, placeReaders),
		look: make(chan struct{}, 1), days: map[dayKey]*inspect.Brief{}}
}

// A collectionList is the collections of a place.
type collectionList struct {
	all  []*inspect.Collection
	left string // what could not be read
}

// collections are those of the place, as they were a moment ago. They are listed for all who ask, so that it goes on when
// who began it has gone.
func (b *batches) collections(ctx context.Context) (l collectionList, err error) {
	select {
	case b.look <- struct{}{}:
		defer func() { <-b.look }()
	case <-ctx.Done():
		return l, ctx.Err()
	}
	if b.listed != nil && time.Since(b.time) < max(leastHostAge, 20*b.took) {
		return collectionList{b.listed, b.left}, nil
	}
	begin := time.Now()
	all, err := inspect.Collections(b.done, b.place)
	if err != nil && (len(all) == 0 || b.done.Err() != nil) {
		return l, err
	}
	if b.left = ""; err != nil {
		b.left = cut(err.Error(), mostLeft)
	}
	b.listed, b.time, b.took = all, time.Now(), time.Since(begin)
	return collectionList{all, b.left}, nil
}

// mostLeft is how many bytes are said of what could not be read.
const mostLeft = 2000

// collection is the one with a code or in a directory.
func (b *batches) collection(ctx context.Context, name string) (*inspect.Collection, error) {
	l, err := b.collections(ctx)
	if err != nil {
		return nil, err
	}
	for _, of := range []func(*inspect.Collection) string{func(c *inspect.Collection) string { return c.Directory },
		func(c *inspect.Collection) string { return c.Code }} {
		if i := slices.IndexFunc(l.all, func(c *inspect.Collection) bool { return of(c) == name }); i >= 0 {
			return l.all[i], nil
		}
	}
	return nil, &problem{http.StatusNotFound, "There is no such collection here", "/api/v1/batches/" + b.name + " lists all"}
}

// brief is a day in a line, read anew only if the day has gone on.
func (b *batches) brief(ctx context.Context, c *inspect.Collection, date string) (*inspect.Brief, error) {
	key := dayKey{c.Directory, date, c.ChangedOn(date)}
	b.mu.Lock()
	x := b.days[key]
	b.mu.Unlock()
	if x != nil {
		return x, nil
	}
	x, err := c.Brief(ctx, date)
	if err == nil && x.Done {
		b.mu.Lock()
		if len(b.days) >= keptDays {
			clear(b.days)
		}
		b.days[key] = x
		b.mu.Unlock()
	}
	return x, err
}

// A dayOf is a day of a collection.
type dayOf struct {
	c    *inspect.Collection
	date string
}

// briefs are several days in a line each, in their order.
func (b *batches) briefs(ctx context.Context, days []dayOf) ([]*inspect.Brief, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	all := make([]*inspect.Brief, len(days))
	var wait sync.WaitGroup
	for i, d := range days {
		if !b.enter(ctx) {
			break
		}
		wait.Go(func() {
			defer b.leave()
			var err error
			if all[i], err = b.brief(ctx, d.c, d.date); err != nil {
				cancel(err)
			}
		})
	}
	wait.Wait()
	return all, context.Cause(ctx)
}

func (b *batches) enter(ctx context.Context) bool {
	select {
	case b.readers <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (b *batches) leave() { <-b.readers }

// The REST's answers.
type (
	batchList struct {
		Batches []batchEntry `json:"batches"`
	}
	batchEntry struct {
		Name        string    `json:"name"` // in URLs
		Place       string    `json:"place"`
		Collections int       `json:"collections"`
		First       string    `json:"first,omitempty"` // day
		Last        string    `json:"last,omitempty"`
		Changed     time.Time `json:"changed,omitzero"`
		Error       string    `json:"error,omitempty"`
	}
	batchAnswer struct {
		Name        string            `json:"name"`
		Place       string            `json:"place"`
		Collections []collectionEntry `json:"collections"`
		LeftOut     string            `json:"left_out,omitempty"` // what could not be read
		Next        string            `json:"next,omitempty"`
	}
	collectionEntry struct {
		Collection string    `json:"collection"` // code
		Directory  string    `json:"directory"`
		Days       int       `json:"days"`
		First      string    `json:"first"`
		Last       string    `json:"last"`
		Changed    time.Time `json:"changed"`
	}
	dayList struct {
		Days []*inspect.Brief `json:"days"` // the newest first
		Next string           `json:"next,omitempty"`
	}
	dayAnswer struct {
		Collection string           `json:"collection"`
		Directory  string           `json:"directory"`
		Date       string           `json:"day"`
		State      string           `json:"state"`
		Done       bool             `json:"done"`
		Nothing    string           `json:"nothing,omitempty"` // why nothing could be fetched
		Began      time.Time        `json:"began"`
		Ended      time.Time        `json:"ended,omitzero"`
		Sites      int              `json:"sites"`
		IdleShare  float64          `json:"idle_share"`
		Counts     map[string]int64 `json:"counts"` // of a day that is not done those of its jobs so far
		Jobs       []jobEntry       `json:"jobs"`   // in the order in which they were done
		Folders    []folderEntry    `json:"folders"`
	}
	jobEntry struct {
		Round   int       `json:"round"`
		Job     string    `json:"job"`
		Began   time.Time `json:"began"`
		Seconds float64   `json:"seconds"`
		Inputs  int       `json:"inputs"` // files
		Failed  int       `json:"failed"` // attempts of tasks
	}
	folderEntry struct {
		Name  string      `json:"name"`
		Path  string      `json:"path"`
		Files int         `json:"files"`
		Bytes int64       `json:"bytes"`
		First []fileEntry `json:"first"` // of the files
	}
	fileEntry struct {
		Name  string `json:"name"`
		Bytes int64  `json:"bytes"`
	}
	entryPage struct {
		Records []batch.Entry `json:"records"` // in the order of URLs
		Looked  int           `json:"looked"`  // how many were gone through
		Next    *int64        `json:"next,omitempty"`
	}
	batchRecord struct {
		URL        string    `json:"url"`
		Became     string    `json:"became"`
		Status     int       `json:"status"` // 0: there was no answer
		Type       string    `json:"type,omitempty"`
		Time       time.Time `json:"time,omitzero"`
		TookMS     int64     `json:"took_ms"`
		From       string    `json:"from,omitempty"`
		Seed       bool      `json:"seed"`
		Depth      int       `json:"depth"`
		Bytes      int64     `json:"bytes"` // of the body
		Addr       string    `json:"addr,omitempty"`
		Truncated  string    `json:"truncated,omitempty"`
		Malformed  string    `json:"malformed,omitempty"`
		Trouble    string    `json:"trouble,omitempty"` // why the answer cannot be read
		Other      bool      `json:"other"`             // the record is among those in other languages
		Day        string    `json:"day,omitempty"`     // whose record it is: an earlier one's where the page is unchanged
		Part       string    `json:"part,omitempty"`
		Offset     int64     `json:"offset"`
		Length     int64     `json:"length"`
		Encoding   string    `json:"encoding,omitempty"`
		Said       string    `json:"encoding_from,omitempty"`
		Language   string    `json:"language,omitempty"`
		Share      float64   `json:"language_share"`
		Confidence float64   `json:"language_confidence"`
		Digest     string    `json:"digest,omitempty"`
		Simhash    string    `json:"simhash,omitempty"`
		Headline   string    `json:"headline,omitempty"`
		Text       string    `json:"text,omitempty"`
		XML        string    `json:"xml,omitempty"`       // as it lies there
		Cut        bool      `json:"cut"`                 // Text or XML are only a beginning
		Request    string    `json:"request,omitempty"`   // as it was sent
		Head       string    `json:"head,omitempty"`      // of the answer
		Fetched    time.Time `json:"fetched_as,omitzero"` // of the record
	}
)

var (
	batchParam      = param{"path", "batch", "string", "the batch crawls' name, as /batches lists it", true}
	collectionParam = param{"path", "collection", "string", "the collection's code or directory", true}
	dayParam        = param{"path", "day", "string", "the day: 2026-11-21, or last", true}
)

const aDay = "/batches/{batch}/collections/{collection}/days/{day}"

var batchEndpoints = []endpoint{
	{"/batches", "batches", "The places of batch crawls that are shown.", nil, batchList{}, (*Server).giveBatches},
	{"/batches/{batch}", "collections", "The collections of a place of batch crawls, in the order of their directories.",
		[]param{batchParam, after, limitParam}, batchAnswer{}, (*Server).giveBatch},
	{"/batches/{batch}/days", "days", "What days of collections came to: the newest first, and those of a day in the order of the collections' directories.",
		[]param{batchParam, {"query", "collection", "string", "only of the collection with this code or directory", false}, after, limitParam},
		dayList{}, (*Server).giveDays},
	{aDay, "day", "A day of a collection: how far it is, what it came to, its jobs, and its files.", []param{batchParam, collectionParam, dayParam},
		dayAnswer{}, (*Server).giveDay},
	{aDay + "/records", "dayRecords", "The XML records of a day that is done, in the order of URLs. A page of the list may have few or none, and yet a next one.",
		[]param{batchParam, collectionParam, dayParam,
			{"query", "find", "string", "only those that have this in URL, headline or text, whatever the case", false},
			{"query", "of", "string", "other: pages in other languages, which were kept apart", false},
			{"query", "cursor", "integer", "where to go on: \"next\" of the answer before", false}, limitParam}, entryPage{}, (*Server).giveDayRecords},
	{aDay + "/record", "dayRecord", "What came of a URL on a day: its answer, its XML record, and its text. Of a page that is unchanged the record of the day that has it.",
		[]param{batchParam, collectionParam, dayParam, urlParam}, batchRecord{}, (*Server).giveDayRecord},
}

// ofBatch is the place that a path names.
func (s *Server) ofBatch(r *http.Request) (*batches, error) {
	if i := slices.IndexFunc(s.batches, func(b *batches) bool { return b.name == r.PathValue("batch") }); i >= 0 {
		return s.batches[i], nil
	}
	return nil, &problem{http.StatusNotFound, "There are no such batch crawls here", "/api/v1/batches lists all"}
}

// ofCollection is the collection that a path names.
func (s *Server) ofCollection(r *http.Request) (*batches, *inspect.Collection, error) {
	b, err := s.ofBatch(r)
	if err != nil {
		return nil, nil, err
	}
	c, err := b.collection(r.Context(), r.PathValue("collection"))
	return b, c, err
}

// ofDay is the day that a path names.
func (s *Server) ofDay(r *http.Request) (b *batches, c *inspect.Collection, date string, err error) {
	if b, c, err = s.ofCollection(r); err != nil {
		return nil, nil, "", err
	}
	if date = r.PathValue("day"); date == "last" {
		date = c.Last()
	}
	if !c.Has(date) {
		return nil, nil, "", &problem{http.StatusNotFound, "The collection has no such day", fmt.Sprintf("its days are from %s to %s", c.Dates[0], c.Last())}
	}
	return b, c, date, nil
}

func (s *Server) giveBatches(r *http.Request) (any, error) {
	return batchList{s.batchEntries(r.Context())}, nil
}

func (s *Server) batchEntries(ctx context.Context) []batchEntry {
	list := make([]batchEntry, len(s.batches))
	var wait sync.WaitGroup
	places := make(chan struct{}, 4)
	for i, b := range s.batches {
		wait.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			l, err := soon(ctx, b.queue, listPatience, b.collections)
			list[i] = b.entry(l, err)
		})
	}
	wait.Wait()
	return list
}

// entry is what a list says of the place.
func (b *batches) entry(l collectionList, err error) batchEntry {
	e := batchEntry{Name: b.name, Place: b.where, Collections: len(l.all)}
	if e.Error = l.left; err != nil {
		e.Error = problemOf(err).Error()
	}
	for _, c := range l.all {
		if e.First == "" || c.Dates[0] < e.First {
			e.First = c.Dates[0]
		}
		e.Last = max(e.Last, c.Last())
		if c.Changed.After(e.Changed) {
			e.Changed = c.Changed
		}
	}
	return e
}

func (s *Server) giveBatch(r *http.Request) (any, error) {
	b, err := s.ofBatch(r)
	if err != nil {
		return nil, err
	}
	n, err := limit(r)
	if err != nil {
		return nil, err
	}
	l, err := b.collections(r.Context())
	if err != nil {
		return nil, err
	}
	x := batchAnswer{Name: b.name, Place: b.where, Collections: []collectionEntry{}, LeftOut: l.left}
	var all []*inspect.Collection
	all, x.Next = collectionsFrom(l.all, r.FormValue("after"), n)
	for _, c := range all {
		x.Collections = append(x.Collections, collectionEntry{c.Code, c.Directory, len(c.Dates), c.Dates[0], c.Last(), c.Changed})
	}
	return x, nil
}

// collectionsFrom are up to n collections behind a directory.
func collectionsFrom(all []*inspect.Collection, after string, n int) (some []*inspect.Collection, next string) {
	at, has := slices.BinarySearchFunc(all, after, func(c *inspect.Collection, dir string) int { return cmp.Compare(c.Directory, dir) })
	if has {
		at++
	}
	if all = all[at:]; len(all) <= n {
		return all, ""
	}
	return all[:n], all[n-1].Directory
}

func (s *Server) giveDays(r *http.Request) (any, error) {
	b, err := s.ofBatch(r)
	if err != nil {
		return nil, err
	}
	n, err := limit(r)
	if err != nil {
		return nil, err
	}
	l, err := b.collections(r.Context())
	if err != nil {
		return nil, err
	}
	all := l.all
	if name := r.FormValue("collection"); name != "" {
		c, err := b.collection(r.Context(), name)
		if err != nil {
			return nil, err
		}
		all = []*inspect.Collection{c}
	}
	days := daysFrom(all, r.FormValue("after"), n+1)
	x := dayList{}
	if len(days) > n {
		days = days[:n]
		x.Next = days[n-1].key()
	}
	if x.Days, err = b.briefs(r.Context(), days); err != nil {
		return nil, err
	}
	x.Days = orEmpty(x.Days)
	return x, nil
}

func (d dayOf) key() string { return d.date + "/" + d.c.Directory }

// daysFrom are up to n days behind another one, the newest first.
func daysFrom(all []*inspect.Collection, after string, n int) (days []dayOf) {
	date, dir, _ := strings.Cut(after, "/")
	for _, d := range datesFrom(all, date, n, dir != "") {
		for _, c := range all {
			if c.Has(d) && (d != date || c.Directory > dir) {
				if days = append(days, dayOf{c, d}); len(days) == n {
					return days
				}
			}
		}
	}
	return days
}

// datesFrom are up to n dates before another one, or from it on, the newest first.
func datesFrom(all []*inspect.Collection, before string, n int, with bool) (dates []string) {
	for _, c := range all {
		end := len(c.Dates)
		if before != "" {
			at, has := slices.BinarySearch(c.Dates, before)
			if end = at; has && with {
				end++
			}
		}
		dates = append(dates, c.Dates[max(end-n-1, 0):end]...)
	}
	slices.Sort(dates)
	dates = slices.Compact(dates)
	slices.Reverse(dates)
	return dates[:min(len(dates), n)]
}

func (s *Server) giveDay(r *http.Request) (any, error) {
	b, c, date, err := s.ofDay(r)
	if err != nil {
		return nil, err
	}
	return b.day(r.Context(), c, date)
}

const filesNamed = 20 // of a folder

func (b *batches) day(ctx context.Context, c *inspect.Collection, date string) (*dayAnswer, error) {
	if !b.enter(ctx) {
		return nil, ctx.Err()
	}
	defer b.leave()
	d, err := c.Day(ctx, date)
	if err != nil {
		return nil, ofDamage(err)
	}
	folders, err := c.Files(ctx, date, filesNamed)
	if err != nil {
		return nil, err
	}
	st := d.State
	x := &dayAnswer{Collection: c.Code, Directory: c.Directory, Date: date, State: inspect.StateOf(st), Done: d.Counts != nil, Nothing: st.Nothing,
		Began: st.Began, Ended: st.Ended, IdleShare: st.IdleShare(), Counts: map[string]int64{}, Jobs: []jobEntry{}, Folders: []folderEntry{}}
	for i := range st.Done {
		j := &st.Done[i]
		x.Jobs = append(x.Jobs, jobEntry{j.Round, j.Job, j.Began, j.Seconds, j.Inputs, j.Failed})
		if d.Counts == nil {
			for name, n := range j.Counters {
				x.Counts[name] += n
			}
		}
	}
	if d.Counts != nil {
		x.Counts, x.Sites = d.Counts.Counts, d.Counts.Sites
	}
	for _, f := range folders {
		e := folderEntry{Name: f.Name, Path: f.Path, Files: f.All, Bytes: f.Bytes, First: []fileEntry{}}
		for _, file := range f.Files {
			e.First = append(e.First, fileEntry(file))
		}
		x.Folders = append(x.Folders, e)
	}
	return x, nil
}

// ofDamage tells of files that are not as they were written.
func ofDamage(err error) error {
	if errors.Is(err, batch.ErrDamaged) {
		return &problem{http.StatusInternalServerError, "Files of the day are damaged", err.Error()}
	}
	return err
}

func (s *Server) giveDayRecords(r *http.Request) (any, error) {
	b, c, date, err := s.ofDay(r)
	if err != nil {
		return nil, err
	}
	return b.records(r, c, date)
}

func (b *batches) records(r *http.Request, c *inspect.Collection, date string) (*entryPage, error) {
	n, err := limit(r)
	if err != nil {
		return nil, err
	}
	cursor, err := number(r, "cursor", 0)
	if err != nil {
		return nil, err
	}
	q := inspect.Query{Find: r.FormValue("find"), Limit: n, Apart: r.FormValue("of") == "other"}
	if of := r.FormValue("of"); of != "" && !q.Apart {
		return nil, badRequest("of is %q: only \"other\" is known", cut(of, 40))
	}
	if !b.enter(r.Context()) {
		return nil, r.Context().Err()
	}
	defer b.leave()
	l, err := c.List(r.Context(), date, q, cursor)
	switch {
	case errors.Is(err, fs.ErrNotExist): // no page of that kind, or not yet
		return &entryPage{Records: []batch.Entry{}}, nil
	case errors.Is(err, inspect.ErrCursor):
		return nil, badRequest("cursor is %d: \"next\" of an answer is wanted", cursor)
	case err != nil:
		return nil, ofDamage(err)
	}
	p := &entryPage{Records: l.Records, Looked: l.Looked}
	if l.Next > 0 {
		p.Next = &l.Next
	}
	return p, nil
}

func (s *Server) giveDayRecord(r *http.Request) (any, error) {
	b, c, date, err := s.ofDay(r)
	if err != nil {
		return nil, err
	}
	return b.record(r.Context(), c, date, r.FormValue("url"))
}

// maxShown is how much of a record's text, of its XML and of heads is given.
const maxShown = 1 << 20

func (b *batches) record(ctx context.Context, c *inspect.Collection, date, typed string) (*batchRecord, error) {
	u, err := weburl.Parse(strings.TrimSpace(typed))
	if err != nil || u.Host() == "" {
		return nil, badRequest("%q is no URL: it begins with http:// or https:// and a host", cut(typed, 200))
	}
	if !b.enter(ctx) {
		return nil, ctx.Err()
	}
	defer b.leave()
	found, err := c.Find(ctx, date, u.Canonical().String())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &problem{http.StatusNotFound, "The day did not ask for this URL", "another day may have; kumo batch show names those"}
	}
	if err != nil {
		return nil, ofDamage(err)
	}
	x := &batchRecord{URL: found.URL, Became: found.Became(), Day: date}
	if found.Trouble != nil {
		x.Trouble = found.Trouble.Error()
	}
	x.setDocument(found.Document)
	pg := found.Page
	if pg == nil {
		if pg, x.Day, err = c.Earlier(ctx, date, found); err != nil {
			return nil, ofDamage(err)
		}
	}
	x.setPage(pg)
	return x, nil
}

func (x *batchRecord) setDocument(d *batch.Document) {
	if d == nil {
		return
	}
	x.Status, x.Type, x.Time, x.TookMS, x.From, x.Seed, x.Depth = d.Status, d.Type, d.Time, d.Took.Milliseconds(), d.From, d.Seed, d.Depth
	x.Bytes, x.Truncated, x.Malformed = int64(len(d.Raw)-d.HeadLen), string(d.Truncated), d.Malformed
	if d.Addr.IsValid() {
		x.Addr = d.Addr.String()
	}
	x.Request, x.Head = string(d.Request[:min(len(d.Request), maxShown)]), string(d.Raw[:min(d.HeadLen, maxShown)])
}

func (x *batchRecord) setPage(pg *inspect.Page) {
	if pg == nil {
		x.Day = ""
		return
	}
	r := &pg.Record
	x.Other, x.Part, x.Offset, x.Length, x.Fetched = pg.Apart, pg.Part, pg.Offset, pg.Length, r.Fetched
	x.Encoding, x.Said, x.Language, x.Share, x.Confidence = r.Encoding, r.EncodingFrom, r.Language, hundredths(r.Share), hundredths(r.Confidence)
	x.Digest, x.Headline = "sha1:"+base32.StdEncoding.EncodeToString(r.Digest[:]), r.Headline
	if r.Simhash != 0 {
		x.Simhash = fmt.Sprintf("%016x", r.Simhash)
	}
	x.Text, x.XML = r.Content, strings.TrimSuffix(string(pg.Line), "\n")
	for _, text := range []*string{&x.Text, &x.XML} {
		if len(*text) > maxShown {
			*text, x.Cut = strings.ToValidUTF8((*text)[:maxShown], ""), true
		}
	}
}

// hundredths is a share as a record has it, without the digits that a float32 has not.
func hundredths(share float32) float64 { return math.Round(float64(share)*100) / 100 }

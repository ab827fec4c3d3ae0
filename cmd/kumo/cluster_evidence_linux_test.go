package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"kumo/internal/lab/synthweb"
)

// Evidence is what a server saw of a crawl by several nodes, and what had been done to them.
type evidence struct {
	log    synthweb.Log
	faults []*fault
	delay  time.Duration // between requests to a host

	centreless bool // no node runs a server, and who is cut off goes on
}

const (
	clocks   = 5 * time.Millisecond // by how much less than the delay a gap may seem, as the server sees it
	slipTime = 2 * time.Second      // how long after a pause a request may still be one that was about to be sent before
	joinTime = 20 * time.Second     // how long after a fault nodes without a centre may take to find each other again
)

// meetings are the requests that came to a host during another, or too soon after it: slips of nodes that had been
// paused, or without a centre did not see each other, and violations.
func (e *evidence) meetings() (slips, violations []synthweb.Overlap) {
	for _, m := range e.log.Overlaps(e.delay - clocks) {
		if e.slipped(m) != nil {
			slips = append(slips, m)
		} else {
			violations = append(violations, m)
		}
	}
	return slips, violations
}

// slipped is the fault by which two requests met as they may; nil if there was none.
func (e *evidence) slipped(m synthweb.Overlap) *fault {
	if e.centreless {
		return e.apart(m)
	}
	return cmp.Or(e.atOnce(m.Request), e.atOnce(m.Before))
}

// apart is the fault by which two nodes did not see each other when their requests met.
func (e *evidence) apart(m synthweb.Overlap) *fault {
	if m.Before.Client == m.Request.Client {
		return nil
	}
	for _, f := range e.faults {
		if m.Request.At.Before(f.began) || !f.back.IsZero() && m.Before.At.After(f.back.Add(joinTime)) {
			continue
		}
		switch f.kind {
		case pause, partition:
			if f.by(m.Before) != f.by(m.Request) {
				return f
			}
		case loss:
			return f
		}
	}
	return nil
}

// atOnce is the pause after which a node made a request at once; nil if there was none.
func (e *evidence) atOnce(r synthweb.Request) *fault {
	for _, f := range e.faults {
		if f.kind == pause && f.by(r) && !f.back.IsZero() && r.At.After(f.back) && r.At.Before(f.back.Add(slipTime)) {
			return f
		}
	}
	return nil
}

// strays are the first requests of nodes after a pause to hosts that others had asked in the meantime: they may be
// slips that nobody met.
func (e *evidence) strays() (found synthweb.Log) {
	const soon = 500 * time.Millisecond // nobody is a member again so soon
	last := map[string]synthweb.Request{}
	for _, r := range e.log {
		f, before := e.atOnce(r), last[r.Host]
		if f != nil && r.At.Before(f.back.Add(soon)) && before.Client != r.Client && before.At.After(f.began) {
			found = append(found, r)
		}
		last[r.Host] = r
	}
	return found
}

// causes is what was fetched twice, by the kind of fault that it is put down to; "" if there was none before.
func (e *evidence) causes() map[kind]synthweb.Log {
	first := map[string]synthweb.Request{}
	for _, r := range e.log {
		key := r.Host + r.Target
		if _, ok := first[key]; !ok && r.Whole && r.Status == 200 {
			first[key] = r
		}
	}
	found := map[kind]synthweb.Log{}
	for _, r := range e.log.Repeats() {
		why := e.cause(first[r.Host+r.Target], r)
		found[why] = append(found[why], r)
	}
	return found
}

// cause is the last fault of the node that had a page first, or else of the one that had it again, or else of any.
func (e *evidence) cause(first, again synthweb.Request) (why kind) {
	sure := 0
	for _, f := range e.faults {
		is := 1
		switch {
		case f.began.IsZero() || f.began.After(again.At):
			continue
		case e.centreless && f.kind == loss: // of all nodes alike
		case e.centreless && (f.by(first) || f.by(again)):
			is = 2 // the last of them: what was between two nodes is over when the next fault comes
		case f.by(first):
			is = 3
		case f.by(again):
			is = 2
		}
		if is >= sure {
			why, sure = f.kind, is
		}
	}
	return why
}

// by reports whether a request was made by one of a fault's nodes.
func (f *fault) by(r synthweb.Request) bool { return slices.Contains(f.clients, r.Client.String()) }

// before is the last request to each host before a fault.
func (e *evidence) before(f *fault) map[string]synthweb.Request {
	last := map[string]synthweb.Request{}
	for _, r := range e.log {
		if r.At.Before(f.began) {
			last[r.Host] = r
		}
	}
	return last
}

// held is how many hosts a fault's nodes were the last to ask.
func (e *evidence) held(f *fault) (n int) {
	for _, r := range e.before(f) {
		if f.by(r) {
			n++
		}
	}
	return n
}

// silence is the longest time without a request to a host that a fault's nodes were on, from their last request before
// it until a little after it was undone.
func (e *evidence) silence(f *fault) (longest time.Duration) {
	const after = 20 * time.Second
	last := e.before(f)
	maps.DeleteFunc(last, func(_ string, r synthweb.Request) bool { return !f.by(r) })
	for _, r := range e.log {
		before, ok := last[r.Host]
		if !ok || !r.At.After(f.began) {
			continue
		}
		if before.At.Before(f.back.Add(after)) {
			longest = max(longest, r.At.Sub(before.At))
		}
		last[r.Host] = r
	}
	return longest
}

// end is when the last request was over.
func (e *evidence) end() (end time.Time) {
	for _, r := range e.log {
		if r.End.After(end) {
			end = r.End
		}
	}
	return end
}

// compare holds the records of all nodes against what the server saw: each page that is to be there is in some record,
// and no page in more records than it was given to clients. It says what is wrong.
func (e *evidence) compare(truth *synthweb.Truth, port int, dirs []string) (wrong []string, err error) {
	served := map[string]int{}
	for _, r := range e.log {
		served[fmt.Sprintf("%s:%d%s", r.Host, port, r.Target)]++
	}
	recorded := map[string]int{}
	for _, dir := range dirs {
		if err := readRecords(dir, recorded); err != nil {
			return nil, err
		}
	}
	for page := range truth.All(port) {
		if recorded[schemeless(page)] == 0 {
			wrong = append(wrong, page+" is in no record")
		}
	}
	for page, n := range recorded {
		if n > served[page] {
			wrong = append(wrong, fmt.Sprintf("%s is in %d records, and was asked for %d times", page, n, served[page]))
		}
	}
	return wrong, nil
}

// readRecords counts the pages of a crawl's folder. The last line may be cut where the crawl was ended.
func readRecords(dir string, pages map[string]int) error {
	data, err := os.ReadFile(filepath.Join(dir, "pages.jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it came to nothing
	}
	if err != nil {
		return err
	}
	for line := range bytes.Lines(data) {
		var page struct{ URL string }
		if err := json.Unmarshal(line, &page); err != nil && bytes.HasSuffix(line, []byte("\n")) {
			return fmt.Errorf("read pages of %s: %w", dir, err)
		} else if err == nil {
			pages[schemeless(page.URL)]++
		}
	}
	return nil
}

// schemeless is a page's host, port, path and query.
func schemeless(page string) string {
	u, err := url.Parse(page)
	if err != nil {
		return page
	}
	return u.Host + u.RequestURI()
}

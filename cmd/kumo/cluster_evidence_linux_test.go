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

// evidence is a server's log of a crawl by several nodes, and the list of faults.
type evidence struct {
	log    synthweb.Log
	faults []*fault
	delay  time.Duration // between requests to a host

	centreless bool // no node runs a server, and nodes that are cut off continue
}

const (
	clocks = 5 * time.Millisecond // by how much less than the delay a gap may seem, as measured at the server
	// for how long after a pause a node may send a request that was due before the pause
	slipTime = 2 * time.Second
	joinTime = 20 * time.Second // for how long after a fault nodes without servers may not have found each other
)

// meetings returns the requests to a host during another one, or too soon after it. Slips are those of nodes that had
// been paused, or that could not see each other without servers; all others are violations.
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

// slipped returns the fault that explains an overlap of two requests; nil if none does.
func (e *evidence) slipped(m synthweb.Overlap) *fault {
	if e.centreless {
		return e.apart(m)
	}
	return cmp.Or(e.atOnce(m.Request), e.atOnce(m.Before))
}

// apart returns the fault by which two nodes did not see each other when their requests overlapped.
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

// atOnce returns the pause right after which a node made a request; nil if there was none.
func (e *evidence) atOnce(r synthweb.Request) *fault {
	for _, f := range e.faults {
		if f.kind == pause && f.by(r) && !f.back.IsZero() && r.At.After(f.back) && r.At.Before(f.back.Add(slipTime)) {
			return f
		}
	}
	return nil
}

// strays returns the first requests of nodes after a pause to hosts that other nodes had contacted in the meantime.
// These may be slips without an overlap.
func (e *evidence) strays() (found synthweb.Log) {
	const soon = 500 * time.Millisecond // no node is a member again so soon
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

// causes returns the pages fetched twice by the kind of fault that caused it; "" if no fault came before.
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

// cause returns the last fault of the node that fetched a page first, or else of the node that repeated it, or else
// any.
func (e *evidence) cause(first, again synthweb.Request) (why kind) {
	sure := 0
	for _, f := range e.faults {
		is := 1
		switch {
		case f.began.IsZero() || f.began.After(again.At):
			continue
		case e.centreless && f.kind == loss: // a loss affects all nodes
		case e.centreless && (f.by(first) || f.by(again)):
			is = 2 // the last one counts: a cut between two nodes is over when the next fault begins
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

// before returns the last request to each host before a fault.
func (e *evidence) before(f *fault) map[string]synthweb.Request {
	last := map[string]synthweb.Request{}
	for _, r := range e.log {
		if r.At.Before(f.began) {
			last[r.Host] = r
		}
	}
	return last
}

// held returns the number of hosts whose last request came from a fault's nodes.
func (e *evidence) held(f *fault) (n int) {
	for _, r := range e.before(f) {
		if f.by(r) {
			n++
		}
	}
	return n
}

// silence returns the longest time without a request to a host of a fault's nodes, from their last request before the
// fault until shortly after its end.
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

// end returns when the last request was over.
func (e *evidence) end() (end time.Time) {
	for _, r := range e.log {
		if r.End.After(end) {
			end = r.End
		}
	}
	return end
}

// compare compares the records of all nodes with the server's log. Each expected page must be in a record, and no page
// in more records than the server sent responses. It returns the errors that it found.
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
		return nil // the crawl wrote no page
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

// schemeless returns a page's host, port, path and query.
func schemeless(page string) string {
	u, err := url.Parse(page)
	if err != nil {
		return page
	}
	return u.Host + u.RequestURI()
}

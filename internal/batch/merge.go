package batch

import (
	"bytes"
	"context"
	"crypto/sha1"
	"iter"
	"net/http"

	"kumo/internal/base/page"
)

// merge keeps the first Document of each URL, and writes its new known state. A URL is fetched in one round only, so
// there are several Documents only after a fault. The input includes the known state of earlier days, but not their
// Documents.
func (s *setup) merge() *Job {
	return &Job{Name: JobMerge, Map: mergeMap, Reduce: EachKey(s.mergeReduce), Route: s.route}
}

func mergeMap(_ context.Context, _ *Task, r Record, emit Emit) error { return emit(r.Key, r.Value) }

func (s *setup) mergeReduce(_ context.Context, t *Task, key []byte, values iter.Seq[[]byte], emit Emit) error {
	var first, was []byte // the first Document, and the known state
	var head Document     // header of first
	for v := range values {
		if KindOf(v) == KindKnown {
			was = bytes.Clone(v)
			continue
		}
		d, err := ReadDocument(key, v)
		if err != nil {
			return err
		}
		if first == nil || d.preferredTo(&head, v, first) {
			first = bytes.Clone(v)
			if head, err = ReadDocument(key, first); err != nil {
				return err
			}
		}
	}
	if first == nil {
		return emit(key, was)
	}
	var known *Known
	if was != nil {
		k, err := ReadKnown(key, was)
		if err != nil {
			return err
		}
		known = &k
	}
	m, err := s.member(head.Collection)
	if err != nil {
		return err
	}
	head.Change = changeSince(&head, known)
	if head.Change == page.Unchanged {
		head.SameAs = known.Stored
	}
	m.countDocument(t, &head)
	if next, keep := m.nextKnown(&head, known); keep {
		if err := emit(key, next.Append(nil)); err != nil {
			return err
		}
	}
	if head.NoArchive {
		head.Raw, head.HeadLen, head.Text = nil, 0, ""
	}
	return emit(key, head.Append(nil))
}

// preferredTo reports whether a Document is kept instead of another one of the same URL. One with an answer comes
// first, then the earlier one. Ties are broken by their bytes, so that the result is always the same.
func (d *Document) preferredTo(o *Document, value, other []byte) bool {
	if answered := d.Status != 0; answered != (o.Status != 0) {
		return answered
	}
	if !d.Time.Equal(o.Time) {
		return d.Time.Before(o.Time)
	}
	return bytes.Compare(value, other) < 0
}

// changeSince compares a visit to the known state.
func changeSince(d *Document, was *Known) page.Recrawl {
	gone := d.Status == http.StatusNotFound || d.Status == http.StatusGone
	switch {
	case was == nil:
		return page.First
	case d.Failure != "" || d.Rule != "":
		return page.Trouble
	case gone:
		return page.Gone
	case d.Unmodified, d.Digest == was.Digest && d.Status == was.Status:
		return page.Unchanged
	case d.Status >= 400:
		return page.Trouble
	}
	return page.Changed
}

// nextKnown returns the known state of a URL after a visit. URLs refused by the collection's own rules are not kept:
// they are judged again when a page links to them.
func (m *member) nextKnown(d *Document, was *Known) (k Known, keep bool) {
	if was != nil {
		k = *was
	} else {
		k = Known{Collection: d.Collection, URL: d.URL, Depth: d.Depth, Seed: d.Seed, First: d.Time}
		if d.Rule != "" && d.Rule != ruleRobots {
			return k, false
		}
	}
	planned := d.Change
	if planned == page.First && (d.Status == http.StatusNotFound || d.Status == http.StatusGone) {
		planned = page.Gone
	}
	k.Depth, k.Seed = min(k.Depth, d.Depth), k.Seed || d.Seed
	k.Visits = m.recrawl.IntervalFor(d.URL).Plan(k.Visits, planned, d.Time)
	k.Visits.Last = d.Time
	if d.Change == page.Trouble || d.Change == page.Gone {
		return k, true // the visit gave no information on the stored page
	}
	if d.Change == page.Changed {
		k.Changes++
	}
	if !d.Unmodified {
		k.Status, k.Digest = d.Status, d.Digest
	}
	k.ETag, k.Modified = d.validators(&k)
	if d.Change != page.Unchanged {
		k.Stored = d.stored()
	}
	return k, true
}

// stored returns the Document itself, if it has a body that may be stored.
func (d *Document) stored() (s Stored) {
	var resp page.Response
	if d.NoArchive || d.Response(&resp) != nil {
		return s
	}
	s.Time = d.Time
	if sum := page.Digest(sha1.Sum(d.Raw[d.HeadLen:])); sum != d.Digest {
		s.Chunked = sum
	}
	return s
}

// maxETag is the maximum length of an ETag that is stored.
const maxETag = 256

// countDocument counts the outcome of a URL.
func (m *member) countDocument(t *Task, d *Document) {
	switch {
	case d.Rule != "":
		m.count(t, "left out: "+d.Rule, 1)
		return
	case d.Failure != "":
		m.count(t, "failed: "+string(d.Failure), 1)
		return
	case d.Change == page.Unchanged:
		m.count(t, "unchanged", 1)
	case d.IsPage():
		m.count(t, "pages", 1)
		m.count(t, "bytes", int64(len(d.Raw)-d.HeadLen))
		if d.Charset != "" {
			m.count(t, "charset "+d.Charset, 1)
		}
		if d.Lang != "" {
			m.count(t, "language "+d.Lang, 1)
		}
	case d.RedirectTo != "":
		m.count(t, "redirects", 1)
	default:
		m.count(t, "errors", 1)
	}
}

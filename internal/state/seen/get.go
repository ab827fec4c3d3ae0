package seen

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"kumo/internal/state/seen/tier"
)

// queries read the data in memory and on disk.
type queries struct {
	*records
	arranger *arranger
}

// Get returns the data about url, from memory and disk; false if there is none.
func (q *queries) Get(url string) (Entry, bool, error) {
	q.mu.Lock()
	all := q.find(url)
	view := q.tiers.Pin()
	q.mu.Unlock()
	if err := errors.Join(all.joinDisk(view.Waiting().Finder(), view.Finder(), url), view.Release()); err != nil {
		return Entry{}, false, err
	}
	e, err := q.entry(url, all)
	return e, err == nil && all.first != emptyRecord().first, err
}

// joinDisk adds the data about url on disk, including undecided offers.
func (r *record) joinDisk(waiting, runs *tier.Finder, url string) error {
	for value, err := range waiting.Find([]byte(url)) {
		_, late, ok := readLate(value)
		if err != nil || !ok {
			return cmp.Or(err, damaged([]byte(url)))
		}
		r.join(late)
	}
	for value, err := range runs.Find([]byte(url)) {
		older, ok := readRecord(value)
		if err != nil || !ok {
			return cmp.Or(err, damaged([]byte(url)))
		}
		older.meta = slices.Clone(older.meta)
		r.join(older)
	}
	return nil
}

// StateOf returns the state of a URL, and the least depth at which it was met in that state.
func (q *queries) StateOf(url string) (State, int32, error) {
	e, _, err := q.Get(url)
	return e.State, e.Depth, err
}

// States returns the state of each URL. It reads each block on disk at most once, so many URLs cost little more than
// their blocks.
func (q *queries) States(urls []string) (_ []State, err error) {
	states := make([]State, len(urls))
	order := make([]int, len(urls))
	all := make([]record, len(urls))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(urls[a], urls[b]) })
	q.mu.Lock()
	for i, url := range urls {
		all[i] = q.find(url)
	}
	view := q.tiers.Pin()
	q.mu.Unlock()
	defer func() { err = errors.Join(err, view.Release()) }()
	waiting, runs := view.Waiting().Finder(), view.Finder()
	for _, i := range order {
		if err := all[i].joinDisk(waiting, runs, urls[i]); err != nil {
			return nil, err
		}
		states[i] = all[i].state
	}
	return states, nil
}

// Pending returns the payload of an undecided offer of url, in memory or on disk; false if there is none.
func (q *queries) Pending(url string) ([]byte, bool, error) {
	q.mu.Lock()
	payload, waits := q.pendingInMemory(url)
	view := q.tiers.Pin()
	q.mu.Unlock()
	var err error
	for value, failed := range view.Waiting().Get(url) {
		late, _, ok := readLate(value)
		if err = failed; err != nil || waits {
			break
		}
		if !ok {
			err = damaged([]byte(url))
			break
		}
		payload, waits = slices.Clone(late), true
	}
	return payload, waits, errors.Join(err, view.Release())
}

package meshnode

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"kumo/internal/base/wait"
	"kumo/internal/cluster/member/mesh"
	"kumo/internal/state/history"
)

// A historyWorker executes the peer's actions on the history in order. It executes all pending actions as one batch,
// and reports the results when they are durable. One goroutine runs it.
type historyWorker struct {
	db *history.DB

	mu      sync.Mutex // guards below
	waiting []mesh.Action
	signal  chan struct{} // capacity 1: signals pending actions
}

// enqueue adds an action: Record, Read, Sweep or Drop.
func (m *historyWorker) enqueue(a mesh.Action) {
	m.mu.Lock()
	m.waiting = append(m.waiting, a)
	m.mu.Unlock()
	wait.Wake(m.signal)
}

func (m *historyWorker) drain() []mesh.Action {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.waiting
	m.waiting = nil
	return all
}

func (m *historyWorker) idle() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.waiting) == 0
}

// run executes actions until ctx ends, and passes the results to tell.
func (m *historyWorker) run(ctx context.Context, tell func(...mesh.Event)) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-m.signal:
		}
		if err := m.execute(ctx, m.drain(), tell); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
	}
}

// execute executes a batch. It collects Drop actions until another action concerns one of their hosts, because each
// group of them costs a checkpoint. If the history is full, it postpones the action and all later ones of the same
// host; only actions of other hosts can make room.
func (m *historyWorker) execute(ctx context.Context, all []mesh.Action, tell func(...mesh.Event)) error {
	var events []mesh.Event
	var drops []string
	var later []mesh.Action
	flush := func(host string) error {
		if len(drops) == 0 || host != "" && !slices.Contains(drops, host) {
			return nil
		}
		defer func() { drops = nil }()
		return m.db.ForgetHosts(ctx, drops...)
	}
	full := map[string]bool{}
	for _, a := range all {
		host := hostOf(a)
		if full[host] {
			later = append(later, a)
			continue
		}
		if drop, ok := a.(mesh.Drop); ok {
			drops = append(drops, drop.Host)
			continue
		}
		err := flush(host)
		var e mesh.Event
		if err == nil {
			e, err = m.executeOne(a)
		}
		switch {
		case errors.Is(err, history.ErrFull):
			full[host] = true
			later = append(later, a)
		case err != nil:
			return err
		default:
			events = append(events, e)
		}
	}
	if err := flush(""); err != nil {
		return err
	}
	if err := m.db.Sync(); err != nil {
		return err
	}
	tell(events...)
	if len(later) == 0 {
		return nil
	}
	if err := wait.For(ctx, fullRetry); err != nil {
		return err
	}
	m.requeue(later)
	return nil
}

// fullRetry is the delay before postponed actions are retried.
const fullRetry = 100 * time.Millisecond

// requeue puts actions back at the front of the queue.
func (m *historyWorker) requeue(all []mesh.Action) {
	m.mu.Lock()
	m.waiting = append(all, m.waiting...)
	m.mu.Unlock()
	wait.Wake(m.signal)
}

func hostOf(a mesh.Action) string {
	switch a := a.(type) {
	case mesh.Record:
		return a.Host
	case mesh.Read:
		return a.Host
	case mesh.Drop:
		return a.Host
	}
	return ""
}

func (m *historyWorker) executeOne(a mesh.Action) (mesh.Event, error) {
	switch a := a.(type) {
	case mesh.Record:
		return m.record(a)
	case mesh.Read:
		return m.read(a)
	case mesh.Sweep:
		return m.sweep(a)
	}
	panic("meshnode: not an action on the history")
}

// record inserts links, and returns their previous states.
func (m *historyWorker) record(a mesh.Record) (mesh.Event, error) {
	r := mesh.Recorded{ID: a.ID, Before: make([]mesh.State, len(a.Links))}
	urls := make([]history.URL, len(a.Links))
	for i, k := range a.Links {
		urls[i] = history.URL{Hash: history.Hash(k.Hash), Done: k.State == mesh.Done, Visit: k.Visit,
			Scheduled: k.State == mesh.Scheduled}
		if !urls[i].Done {
			urls[i].Data = k.Item
		}
	}
	before, err := m.db.Insert(a.Host, urls, nil)
	if err != nil {
		return nil, err
	}
	for i, s := range before {
		r.Before[i] = states[s]
	}
	r.Open = m.db.OpenURLs(a.Host)
	return r, nil
}

// states maps states of the history to those of package mesh.
var states = [...]mesh.State{history.Unknown: mesh.Unknown, history.Dispatched: mesh.Dispatched,
	history.Done: mesh.Done}

const (
	maxRead  = 500  // links per result
	maxSwept = 2000 // URLs read per sweep
)

func (m *historyWorker) read(a mesh.Read) (mesh.Event, error) {
	k := mesh.Known{ID: a.ID}
	if a.Hashes != nil {
		for _, h := range a.Hashes {
			u, known, err := m.db.Get(a.Host, history.Hash(h))
			if err != nil {
				return nil, err
			}
			if known {
				u.Data = bytes.Clone(u.Data)
				k.Links = append(k.Links, linkOf(&u))
			}
		}
		return k, nil
	}
	if a.All {
		all, next, err := m.db.Records(a.Host, history.Cursor(a.From), maxRead)
		for _, r := range all {
			k.Links = appendLinks(k.Links, r.URLs)
		}
		k.Next = string(next)
		return k, err
	}
	var from history.Hash
	copy(from[:], a.From)
	urls, next, more, err := m.db.Dispatched(a.Host, from, maxRead)
	k.Links = appendLinks(nil, urls)
	if more {
		k.Next = string(next[:])
	}
	return k, err
}

func appendLinks(links []mesh.Link, urls []history.URL) []mesh.Link {
	for i := range urls {
		links = append(links, linkOf(&urls[i]))
	}
	return links
}

func linkOf(u *history.URL) mesh.Link {
	k := mesh.Link{Hash: mesh.Hash(u.Hash), State: mesh.Dispatched, Item: u.Data, Visit: u.Visit}
	switch {
	case u.Done:
		k.State, k.Item = mesh.Done, nil
	case u.Scheduled:
		k.State = mesh.Scheduled
	}
	return k
}

// sweep returns hosts in the order of their keys. A host with many URLs may be returned more than once.
func (m *historyWorker) sweep(a mesh.Sweep) (mesh.Event, error) {
	all, next, err := m.db.RecordsWithin(a.In.Prefix, a.In.Bits, history.Cursor(a.From), maxSwept)
	s := mesh.Swept{Next: string(next)}
	for _, r := range all {
		if n := len(s.Hosts); n == 0 || s.Hosts[n-1] != r.Host {
			s.Hosts = append(s.Hosts, r.Host)
		}
	}
	return s, err
}

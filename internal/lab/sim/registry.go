package sim

import (
	"errors"
	"slices"
	"strings"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/member/quorum"
)

var errUnavailable = errors.New("the registry cannot be reached")

// requestTimeout is how long a node waits for an answer of the registry.
const requestTimeout = 4 * time.Second

// A registry keeps values by key, which change by compare-and-set, and the logs to which journals are shipped. It is
// one, as a quorum of servers is one as long as it has a leader; where the network is cut, it is on the side that is
// not cut off.
type registry struct {
	w             *world
	leaderless    bool // it has no leader
	revision      uint64
	values        map[string]member.Entry
	keys          []string // in order of creation, so that all is told in the same order each time
	watchers      map[string][]*watcher
	leaseWatchers []*watcher // of all leases
}

// A watcher is one process's connection that tells it of changes.
type watcher struct {
	p      *process
	keys   []string
	leases bool      // of all nodes
	lanes  [4]moment // when the last change was told, by key's hash: per key they are in order, over all they are not
	stale  bool      // something was missed: all is told anew when the connection is back
	synced bool      // that all was told was told
}

// addRequest carries a request from a process to the registry and its answer back. do is called at most once; answer exactly
// once, with false if the process has waited in vain: do may have been called then, or may be yet.
func (r *registry) request(p *process, bytes int, do func(), answer func(ok bool)) {
	w, m := r.w, p.m.index
	answered := false
	once := func(ok bool) {
		if !answered {
			answered = true
			answer(ok)
		}
	}
	w.k.schedule(p, requestTimeout, func() { once(false) })
	there := w.net.delay(m, registrySite, bytes) + w.k.exponential(r.w.cfg.Commit)
	if w.k.chance(w.net.loss) {
		there += w.k.exponential(requestTimeout / 2) // words with the registry are sent again where they are lost; they come late
	}
	w.k.after(there, func() {
		if r.leaderless || w.net.blocked(m, registrySite) {
			return
		}
		do()
		w.k.schedule(p, w.net.delay(registrySite, m, 100), func() {
			if !w.net.blocked(registrySite, m) {
				once(true)
			}
		})
	})
}

// put writes a value if its revision is still rev.
func (r *registry) put(p *process, req member.Write) {
	var revision uint64
	var err error
	do := func() { revision, err = r.write(req) }
	r.request(p, len(req.Value), do, func(ok bool) {
		wrote := member.Wrote{Key: req.Key, Revision: revision, Err: err}
		if !ok {
			wrote = member.Wrote{Key: req.Key, Err: errUnavailable}
		}
		p.addEvent(wrote)
	})
}

func (r *registry) write(req member.Write) (uint64, error) {
	old, known := r.values[req.Key]
	rev := old.Revision
	if old.Value == nil {
		rev = 0 // there is none
	}
	if rev != req.Revision {
		return 0, member.ErrStale
	}
	if !known {
		r.keys = append(r.keys, req.Key)
	}
	r.revision++
	e := member.Entry{Key: req.Key, Value: req.Value, Revision: r.revision}
	r.values[req.Key] = e
	r.w.onWrite(old, e)
	for _, w := range r.watchers[req.Key] {
		r.notify(w, e)
	}
	if strings.HasPrefix(req.Key, quorum.LeasePrefix) {
		for _, w := range r.leaseWatchers {
			r.notify(w, e)
		}
	}
	return r.revision, nil
}

// trackRepairs replaces what a process watches, and tells it what it has not watched before.
func (r *registry) watch(p *process, req member.Watch) {
	w := p.watcher
	if w == nil {
		w = &watcher{p: p}
		p.watcher = w
	}
	had := *w
	r.unwatch(w)
	w.leases = slices.Contains(req.Keys, quorum.LeasePrefix)
	w.keys = slices.DeleteFunc(slices.Sorted(slices.Values(req.Keys)), func(key string) bool {
		return key == quorum.LeasePrefix
	})
	w.keys = slices.Compact(w.keys)
	for _, key := range w.keys {
		r.watchers[key] = append(r.watchers[key], w)
	}
	if w.leases {
		r.leaseWatchers = append(r.leaseWatchers, w)
	}
	r.sendInitial(w, &had)
}

// sendInitial tells a watcher the present values of what it did not watch before.
func (r *registry) sendInitial(w *watcher, had *watcher) {
	var try func()
	try = func() {
		if r.leaderless || !r.w.net.reaches(w.p.m.index) {
			r.w.k.schedule(w.p, time.Second, try)
			return
		}
		r.notifyAll(w, had)
	}
	r.w.k.schedule(w.p, r.w.net.delay(w.p.m.index, registrySite, 100), try)
}

func (r *registry) notifyAll(w, had *watcher) {
	for _, key := range r.keys {
		if w.wants(key) && !had.wants(key) {
			r.notify(w, r.values[key])
		}
	}
	if !w.synced {
		r.deliver(w, max(slices.Max(w.lanes[:]), r.w.k.now), func() {
			if !w.synced {
				w.synced = true
				w.p.addEvent(member.Synced{})
			}
		})
	}
}

func (w *watcher) wants(key string) bool {
	return slices.Contains(w.keys, key) || w.leases && strings.HasPrefix(key, quorum.LeasePrefix)
}

func (r *registry) unwatch(w *watcher) {
	same := func(x *watcher) bool { return x == w }
	for _, key := range w.keys {
		r.watchers[key] = slices.DeleteFunc(r.watchers[key], same)
	}
	r.leaseWatchers = slices.DeleteFunc(r.leaseWatchers, same)
}

// tell lets a watcher know of a value, after those of the same key that it was told before.
func (r *registry) notify(w *watcher, e member.Entry) {
	if w.stale {
		return
	}
	if !r.w.net.reaches(w.p.m.index) {
		w.stale = true
		return
	}
	lane := &w.lanes[(len(e.Key)+int(e.Key[len(e.Key)-1]))%len(w.lanes)]
	*lane = max(*lane+1, r.w.k.now+r.w.net.delay(registrySite, w.p.m.index, len(e.Value)))
	r.deliver(w, *lane, func() { w.p.addEvent(e) })
}

func (r *registry) deliver(w *watcher, at moment, f func()) {
	r.w.k.schedule(w.p, at-r.w.k.now, func() {
		if !r.w.net.reaches(w.p.m.index) {
			w.stale = true
			return
		}
		f()
	})
}

// resume tells watchers anew whose connection was lost and can be had again.
func (r *registry) resume() {
	for _, p := range r.w.processes() {
		w := p.watcher
		if w == nil || !w.stale {
			continue
		}
		r.w.k.schedule(p, r.w.k.uniform(50*time.Millisecond, 2*time.Second), func() {
			if !w.stale || r.leaderless || !r.w.net.reaches(p.m.index) {
				return
			}
			w.stale = false
			r.notifyAll(w, &watcher{})
		})
	}
}

// A shipped log is what the registry's servers have of a node's journal.
type shippedLog struct {
	journal *journal
	length  int  // entries
	closed  bool // by whoever folds it: nothing is added any more
}

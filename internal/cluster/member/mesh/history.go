package mesh

import "slices"

// A history gives access to the node's history on disk: it matches Record and Read actions with their answers.
//
// Invariant: each answer is passed on once. All changes to the number of a host's open URLs are reported to opened
// before the answer is.
type history struct {
	core          *core
	recording     map[uint64]func(Recorded)
	reading       map[uint64]func(Known)
	recordingOpen int // unanswered Records of open URLs

	changing func(host string)                   // called before URLs of a host are recorded
	opened   func(host string, open, recent int) // reports a host's open URLs, recent of which were just recorded
}

func newHistory(c *core) *history {
	return &history{core: c, recording: map[uint64]func(Recorded){}, reading: map[uint64]func(Known){}}
}

// record records links of a host, and then calls f. fresh are those that are open and were unknown before: f has them
// dispatched.
func (h *history) record(host string, links []Link, f func(r Recorded, fresh []Link)) {
	h.changing(host)
	works := anyOpen(links)
	if works {
		h.recordingOpen++
	}
	id := h.core.number()
	h.recording[id] = func(r Recorded) {
		if works {
			h.recordingOpen--
		}
		fresh := newOf(links, r.Before)
		h.opened(host, r.Open, len(fresh))
		f(r, fresh)
	}
	h.core.do(Record{ID: id, Host: host, Links: links})
}

// read reads links of a host from a position on, the open ones or all, and calls f with them.
func (h *history) read(host, from string, all bool, f func(Known)) {
	id := h.core.number()
	h.reading[id] = f
	h.core.do(Read{ID: id, Host: host, From: from, All: all})
}

// readURLs reads some URLs of a host, in any state and visit, and calls f with those that are known.
func (h *history) readURLs(host string, links []Link, f func(Known)) {
	id := h.core.number()
	h.reading[id] = f
	hashes := make([]Hash, len(links))
	for i := range links {
		hashes[i] = links[i].Hash
	}
	h.core.do(Read{ID: id, Host: host, Hashes: hashes})
}

// call calls the function that waits for an answer, if there is one.
func call[E any](waiting map[uint64]func(E), id uint64, e E) {
	if f := waiting[id]; f != nil {
		delete(waiting, id)
		f(e)
	}
}

// newOf returns the links that are open and were unknown before, each once.
func newOf(links []Link, before []State) (fresh []Link) {
	met := map[Hash]bool{}
	for i, s := range before {
		if k := links[i]; s == Unknown && k.State == Dispatched && !met[k.Hash] {
			met[k.Hash] = true
			fresh = append(fresh, k)
		}
	}
	return fresh
}

// doneOf returns the links that are done by the reply of another node, each with the state that this node should
// record: if the other one knows a later visit, the state of that, since no other node may know it.
func doneOf(links []Link, r *reply) []Link {
	done := withState(links, r.states, Done)
	for i, k := range done {
		done[i] = Link{Hash: k.Hash, State: Done, Visit: k.Visit}
		isLater := func(o Link) bool { return o.Hash == k.Hash && o.Visit > k.Visit }
		if at := slices.IndexFunc(r.later, isLater); at >= 0 {
			done[i] = r.later[at]
		}
	}
	return done
}

// withState returns the links for which another node has returned a state.
func withState(links []Link, states []State, state State) (some []Link) {
	for i, s := range states {
		if s == state && i < len(links) {
			some = append(some, links[i])
		}
	}
	return some
}

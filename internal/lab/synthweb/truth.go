package synthweb

import (
	"iter"
	"math/bits"
	"net/url"
)

// TruthOptions are the settings of the crawl that is scored. The zero value means scope any from Web.Seeds, robots.txt
// obeyed, no embeds.
type TruthOptions struct {
	Seeds        []string               // default: Web.Seeds()
	Within       func(host string) bool // hosts in scope; nil: all
	Embeds       bool                   // images, style sheets and scripts are fetched, too
	IgnoreRobots bool
}

// A Truth is the set of resources that a correct crawler fetches with a final answer (2xx, 3xx, 404 or 410). It does
// not include calendars, which are endless, robots.txt, and the pages of dead hosts.
type Truth struct {
	w      *Web
	opts   TruthOptions
	set    bitset
	counts [numKinds]int
	len    int
}

// Truth computes the closure of the links. It takes about 2 µs per page.
func (w *Web) Truth(opts TruthOptions) *Truth {
	if opts.Seeds == nil {
		opts.Seeds = w.Seeds()
	}
	t := &Truth{w: w, opts: opts, set: newBitset(w.ids())}
	var todo []Ref
	for _, seed := range opts.Seeds {
		if r, ok := w.refOf(seed); ok {
			todo = t.offer(todo, r)
		}
	}
	var links []link
	for len(todo) > 0 {
		r := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if to, ok := w.cfg.target(r); ok {
			todo = t.offer(todo, to)
			continue
		}
		links = w.links(links[:0], r)
		for _, l := range links {
			if l.via != byStealth && (l.via != byEmbed || opts.Embeds) {
				todo = t.offer(todo, l.Ref)
			}
		}
	}
	return t
}

// offer adds r to the set and the list, unless it is already there or out of the crawl's scope.
func (t *Truth) offer(todo []Ref, r Ref) []Ref {
	id := t.w.id(r)
	switch {
	case id < 0, r.Kind == Calendar, t.w.hosts[r.Host].silent():
		return todo
	case t.opts.Within != nil && !t.opts.Within(t.w.Host(int(r.Host))):
		return todo
	case !t.opts.IgnoreRobots && t.w.hosts[r.Host].forbids(r.Kind):
		return todo
	case t.set.add(id):
		return todo
	}
	t.counts[r.Kind]++
	t.len++
	return append(todo, r)
}

func (h *host) forbids(k Kind) bool {
	return h.traits.has(Shut) || h.traits.has(Failing) ||
		kinds[k].barred && !h.traits.has(NoRobots) && !h.traits.has(Forbidden)
}

// refOf finds the resource at a URL, ignoring the port.
func (w *Web) refOf(rawURL string) (Ref, bool) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return Ref{}, false
	}
	i, ok := w.hostOf(u.Host)
	if !ok {
		return Ref{}, false
	}
	return w.locate(i, []byte(u.RequestURI())), true
}

// Has reports whether a correct crawler fetches a URL, ignoring the port.
func (t *Truth) Has(rawURL string) bool {
	r, ok := t.w.refOf(rawURL)
	if !ok {
		return false
	}
	id := t.w.id(r)
	return id >= 0 && t.set.has(id)
}

// Len returns the number of URLs.
func (t *Truth) Len() int { return t.len }

// Counts returns the number of URLs of each kind that occurs.
func (t *Truth) Counts() map[string]int {
	counts := make(map[string]int)
	for k, n := range t.counts {
		if n > 0 {
			counts[Kind(k).String()] = n
		}
	}
	return counts
}

// All iterates over the URLs with the given port.
func (t *Truth) All(port int) iter.Seq[string] {
	return func(yield func(string) bool) {
		t.set.each(t.set.word, func(id int) bool { return yield(t.w.URL(t.w.ref(id), port)) })
	}
}

// overlap counts the members in got, the members not in got, and the resources in got that are not members.
func (t *Truth) overlap(got bitset) (covered, missing, beyond int) {
	for at := range t.set {
		want, have := t.set[at], got.word(at)
		covered += bits.OnesCount64(want & have)
		missing += bits.OnesCount64(want &^ have)
		beyond += bits.OnesCount64(have &^ want)
	}
	return covered, missing, beyond
}

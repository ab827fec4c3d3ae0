package synthweb

import (
	"iter"
	"math/bits"
	"net/url"
)

// TruthOptions say what the crawl that is judged was told to do. The zero value is scope any from Web.Seeds, robots.txt
// obeyed, embeds left out.
type TruthOptions struct {
	Seeds        []string               // Web.Seeds()
	Within       func(host string) bool // hosts in scope; nil: all
	Embeds       bool                   // images, style sheets and scripts are fetched too
	IgnoreRobots bool
}

// A Truth is the set of resources that a right crawler fetches with a final answer (2xx, 3xx, 404 or 410). Calendars,
// which have no end, robots.txt and what dead hosts would have are not in it.
type Truth struct {
	w      *Web
	opts   TruthOptions
	set    bitset
	counts [numKinds]int
	len    int
}

// Truth computes the closure on the graph. It takes about 2 µs a page.
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

// offer puts r into the set and on the list, unless it is there already or no business of the crawl's.
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

// refOf finds the resource at a URL, whatever its port.
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

// Has reports whether a right crawler fetches a URL; its port does not matter.
func (t *Truth) Has(rawURL string) bool {
	r, ok := t.w.refOf(rawURL)
	if !ok {
		return false
	}
	id := t.w.id(r)
	return id >= 0 && t.set.has(id)
}

// Len is the number of URLs.
func (t *Truth) Len() int { return t.len }

// Counts is the number of URLs of each kind that has any.
func (t *Truth) Counts() map[string]int {
	counts := make(map[string]int)
	for k, n := range t.counts {
		if n > 0 {
			counts[Kind(k).String()] = n
		}
	}
	return counts
}

// All goes through the URLs, with the given port.
func (t *Truth) All(port int) iter.Seq[string] {
	return func(yield func(string) bool) {
		t.set.each(t.set.word, func(id int) bool { return yield(t.w.URL(t.w.ref(id), port)) })
	}
}

// overlap counts the members that are in got and those that are not, and the members of got that are none.
func (t *Truth) overlap(got bitset) (covered, missing, beyond int) {
	for at := range t.set {
		want, have := t.set[at], got.word(at)
		covered += bits.OnesCount64(want & have)
		missing += bits.OnesCount64(want &^ have)
		beyond += bits.OnesCount64(have &^ want)
	}
	return covered, missing, beyond
}

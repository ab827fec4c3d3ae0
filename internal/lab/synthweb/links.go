package synthweb

import (
	"slices"

	"kumo/internal/lab/dice"
)

// A link is a resource that a page links to, and how.
type link struct {
	Ref
	via via
}

// links appends the links of the page at r in the order of its markup, without resources that do not exist on the web's
// day. Resources that are not pages have no links here; see target for redirects.
func (w *Web) links(dst []link, r Ref) []link {
	before := len(dst)
	dst = w.permanentLinks(dst, r)
	if w.cfg.Day == 0 {
		return dst
	}
	gone := func(l link) bool { return !w.alive(l.Ref) }
	return dst[:before+len(slices.DeleteFunc(dst[before:], gone))]
}

// permanentLinks appends the links of the page at r on any day.
func (w *Web) permanentLinks(dst []link, r Ref) []link {
	home, own := Ref{Host: r.Host}, Ref{Host: r.Host, N: r.N}
	switch r.Kind {
	case Page, Copy:
		return w.pageLinks(dst, r)
	case Refresh:
		return append(dst, link{own, byLink}, link{home, byLink})
	case Private, Script, Open, Flaky, Cut, Large, Frame, Ghost:
		return append(dst, link{home, byLink}, link{own, byLink})
	case Session:
		return append(dst, link{home, byLink})
	case Calendar:
		return append(dst, link{home, byLink}, link{Ref{r.Host, r.N + 1, Calendar}, byLink},
			link{Ref{r.Host, r.N / 2, Calendar}, byLink})
	}
	return dst
}

func (w *Web) pageLinks(dst []link, r Ref) []link {
	h := &w.hosts[r.Host]
	if h.dead {
		return append(dst, link{Ref{Host: r.Host}, byLink})
	}
	d := w.cfg.dice(r.Host, Page, r.N)
	dst = w.companions(dst, r, &d)
	before := len(dst)
	for child := int(r.N)*fanout + 1; child <= int(r.N)*fanout+fanout && child < h.pages; child++ {
		dst = append(dst, link{w.firstLink(Ref{Host: r.Host, N: uint32(child)}), byLink})
	}
	if r.N == 0 {
		dst = w.hostLinks(dst, r.Host)
	}
	median := float64(w.cfg.MeanLinks) / 1.28 // the mean of a lognormal with sigma 0.7 is 1.28 medians
	degree := min(int(d.Lognormal(median, 0.7)+0.5), 16*w.cfg.MeanLinks)
	for n := degree - (len(dst) - before); n > 0; n-- {
		dst = append(dst, link{w.anywhere(r.Host, &d), byLink})
	}
	return dst
}

// companions appends the links to the page's companions that the page itself contains.
func (w *Web) companions(dst []link, r Ref, d *dice.Dice) []link {
	for k := Hop; k < Calendar; k++ {
		how := kinds[k].via
		if w.rates[k] == 0 || how == byTree || how == byNothing || !d.Chance(w.rates[k]) {
			continue
		}
		n := r.N
		if k == Style || k == Code {
			n %= 3 // shared by the host's pages
		}
		dst = append(dst, link{Ref{r.Host, n, k}, how})
	}
	return dst
}

// firstLink returns the resource that the parent of a page links to: the page, or a redirect to it.
func (w *Web) firstLink(page Ref) Ref {
	d := w.cfg.dice(page.Host, Hop, page.N)
	for _, k := range [...]Kind{Hop, Refresh, Hop2, Hop3} {
		if d.Chance(w.rates[k]) {
			page.Kind = k
			return page
		}
	}
	return page
}

// hostLinks appends the links of a live host's front page to other hosts and to its calendar.
func (w *Web) hostLinks(dst []link, i uint32) []link {
	living := w.cfg.Hosts
	for child := int(i)*fanout + 1; child <= int(i)*fanout+fanout && child < living; child++ {
		dst = append(dst, link{Ref{Host: uint32(child)}, byLink})
	}
	for dead := living + int(i); dead < len(w.hosts); dead += living {
		dst = append(dst, link{Ref{Host: uint32(dead)}, byLink})
	}
	if w.hosts[i].traits.has(Trap) {
		dst = append(dst, link{Ref{i, 0, Calendar}, byLink})
	}
	return dst
}

// anywhere draws the target of an ordinary link: a page of the same host in nine of ten cases.
func (w *Web) anywhere(from uint32, d *dice.Dice) Ref {
	if d.Chance(900) {
		return Ref{Host: from, N: uint32(d.Ranked(w.hosts[from].pages))}
	}
	if len(w.hosts) > w.cfg.Hosts && d.Chance(10) {
		dead := uint32(w.cfg.Hosts + d.Below(len(w.hosts)-w.cfg.Hosts))
		return Ref{Host: dead, N: uint32(d.Below(deadPages))}
	}
	to := uint32(d.Ranked(w.cfg.Hosts))
	return Ref{Host: to, N: uint32(d.Ranked(w.hosts[to].pages))}
}

// target returns the target of a redirect.
func (c *Config) target(r Ref) (Ref, bool) {
	switch r.Kind {
	case Hop:
		r.Kind = Page
	case Hop2, Hop3, LoopBack:
		r.Kind--
	case Loop:
		r.Kind = LoopBack
	case Lure:
		r.Kind = Private
	case Out:
		d := c.dice(r.Host, Out, r.N)
		r = Ref{Host: uint32(d.Below(c.Hosts))}
	default:
		return r, false
	}
	return r, true
}

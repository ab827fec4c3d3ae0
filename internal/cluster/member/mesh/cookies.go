package mesh

import (
	"time"

	"kumo/internal/cluster/strategy"
)

// MaxCookies limits the bytes of a host's cookies.
const MaxCookies = 64 << 10

// cookieSharing sends a host's cookies to the node that fetches the host next (itemCookies), with Config.ShareCookies.
// Any member may be that node, and so obtain the cookies of a host.
//
// A node sends them after it has stopped fetching the host, and before the next node may learn that: before itemMoved
// and the reply to itemYield. That node replies when its engine has them. So they are there before its first request.
//
// A node accepts cookies only of hosts that it is about to fetch. Some are of a domain, and so also sent to other hosts:
// the engine adds no such cookie of a name that it has for the domain, or for another of its hosts. So nobody can
// replace the cookies of a host that a node fetches.
//
// Invariant: done is called once, also if the cookies do not arrive. A node that refuses cookies, or does not answer,
// delays no other host for a while.
type cookieSharing struct {
	core     *core
	place    *place
	mail     poster
	handover func(host string) *handover // nil if this node does not have the host
	on       bool
	refusing recent // nodes that have refused cookies, or not answered

	reading map[uint64]func(CookiesRead)
	adding  map[uint64]func(CookiesAdded)
}

const (
	refusingTime   = 2 * time.Minute
	maxRefusing    = 256
	maxCookieTries = 5
	maxCookieAdds  = 256 // concurrent ones
)

func newCookieSharing(c *core, p *place, m poster, on bool) *cookieSharing {
	return &cookieSharing{core: c, place: p, mail: m, on: on, refusing: recent{lasts: refusingTime, most: maxRefusing},
		reading: map[uint64]func(CookiesRead){}, adding: map[uint64]func(CookiesAdded){}}
}

// send sends a host's cookies to a node, and then calls done.
func (s *cookieSharing) send(host string, to strategy.Node, done func()) {
	if !s.on || to == "" || to == s.core.self || s.refusing.has(to, s.core.now) {
		done()
		return
	}
	id := s.core.number()
	s.reading[id] = func(c CookiesRead) {
		if len(c.Data) == 0 || len(c.Data) > MaxCookies {
			done()
			return
		}
		s.post(to, item{kind: itemCookies, host: host, cookies: c.Data}, 1, done)
	}
	s.core.do(ReadCookies{ID: id, Host: host})
}

// post posts cookies, and repeats this while the node cannot accept them yet.
func (s *cookieSharing) post(to strategy.Node, it item, try int, done func()) {
	s.mail.post(to, it, func(_ strategy.Node, r *reply) {
		if r != nil && r.code == replyLater && try < maxCookieTries {
			s.core.after(pause, func() { s.post(to, it, try+1, done) })
			return
		}
		if r == nil || r.code == replyNo {
			s.refusing.add(to, s.core.now)
		}
		done()
	})
}

// receive processes an itemCookies.
func (s *cookieSharing) receive(_ strategy.Node, it item, answer func(reply)) {
	h := s.handover(it.host)
	switch {
	case h != nil && !h.isWaiting():
		answer(reply{code: replyMoved, node: s.core.self})
	case h == nil && !s.place.isTarget(it.host) && !s.place.view.guests[it.host], len(s.adding) >= maxCookieAdds:
		answer(later())
	default:
		id := s.core.number()
		s.adding[id] = func(c CookiesAdded) {
			if c.Postponed {
				answer(later())
			} else {
				answer(reply{code: replyYes})
			}
		}
		s.core.do(AddCookies{ID: id, Host: it.host, Data: it.cookies})
	}
}

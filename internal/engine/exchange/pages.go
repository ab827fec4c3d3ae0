package exchange

import (
	"sync/atomic"

	"kumo/internal/cluster/member"
)

// A Page counts the links that a visit has found and that are yet to be taken. When it is closed and has none, it is
// over, for good.
type Page struct {
	left atomic.Int64 // links, and one until it is closed
	done func()
}

// NewPage makes a page. over is called once, when it is over, by whoever brings that about; it must be quick, and does
// not call the outbox.
func NewPage(over func()) *Page {
	p := &Page{done: over}
	p.left.Store(1)
	return p
}

// Close says that the page gets no more links.
func (p *Page) Close() { p.release() }

// HasLinks reports whether links of a page that is not closed are yet to be taken.
func (p *Page) HasLinks() bool { return p.left.Load() > 1 }

func (p *Page) release() {
	if p.left.Add(-1) == 0 {
		p.done()
	}
}

// pages are those whose links wait in an outbox, by the links' numbers.
type pages struct {
	byLink      map[uint64][]*Page
	count       int64  // of all in of
	lastEarlier uint64 // number that an earlier process has given
	earlier     int    // links with such numbers that wait
}

// pageCost is what a page's share in a link takes, about, with a part of what the page itself does.
const pageCost = 128

// bytes is the memory that pages take, about: many may wait for one link.
func (p *pages) bytes() int64 { return p.count * pageCost }

// add lets a page have a link.
func (p *pages) add(number uint64, page *Page) {
	if p.byLink == nil {
		p.byLink = map[uint64][]*Page{}
	}
	all := p.byLink[number]
	if len(all) > 0 && all[len(all)-1] == page { // which has it twice
		return
	}
	page.left.Add(1)
	p.byLink[number] = append(all, page)
	p.count++
}

// remove adds the pages that have links which were taken.
func (p *pages) remove(r member.Range, less []*Page) []*Page {
	for n := r.First; n <= r.Last; n++ {
		less = append(less, p.byLink[n]...)
		p.count -= int64(len(p.byLink[n]))
		delete(p.byLink, n)
		if n <= p.lastEarlier {
			p.earlier--
		}
	}
	return less
}

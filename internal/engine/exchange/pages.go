package exchange

import (
	"sync/atomic"

	"kumo/internal/cluster/member"
)

// A Page counts the links of a visit that no node has taken yet. When it is closed and has none left, it is done.
type Page struct {
	left atomic.Int64 // links, plus one until it is closed
	done func()
}

// NewPage returns an open page. done is called once, when the page is done. It must be quick, and must not call the
// outbox.
func NewPage(done func()) *Page {
	p := &Page{done: done}
	p.left.Store(1)
	return p
}

// Close closes the page: it gets no more links.
func (p *Page) Close() { p.release() }

// HasLinks reports whether a page that is not closed has links that no node has taken yet.
func (p *Page) HasLinks() bool { return p.left.Load() > 1 }

func (p *Page) release() {
	if p.left.Add(-1) == 0 {
		p.done()
	}
}

// pages has the pages of the links in an outbox, by the links' numbers.
type pages struct {
	byLink      map[uint64][]*Page
	count       int64  // pages in byLink, once for each link
	lastEarlier uint64 // largest number of an earlier process
	earlier     int    // links of earlier processes that are left
}

// pageCost is about how many bytes a page takes for each of its links.
const pageCost = 128

// bytes returns about how much memory the pages take: many pages may share a link.
func (p *pages) bytes() int64 { return p.count * pageCost }

// add makes a page wait for a link.
func (p *pages) add(number uint64, page *Page) {
	if p.byLink == nil {
		p.byLink = map[uint64][]*Page{}
	}
	all := p.byLink[number]
	if len(all) > 0 && all[len(all)-1] == page { // the page has the link twice
		return
	}
	page.left.Add(1)
	p.byLink[number] = append(all, page)
	p.count++
}

// remove removes a range of links, and appends their pages to less.
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

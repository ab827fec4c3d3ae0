package crawl

import (
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"kumo/internal/recovery"

	"kumo/internal/entry"

	"kumo/internal/bounded"
	"kumo/internal/frontier"
	"kumo/internal/item"
	"kumo/internal/ledger"
	"kumo/internal/member"
	"kumo/internal/seen"
	"kumo/internal/strategy"
)

// An outbox is what this node has found and others are to fetch. What is put there is in the journal's same batch as
// the done mark of the page that has the link, and stays there until the answer of the host's owner is journalled.
type outbox struct {
	most int64 // bytes, beyond which workers wait
	gate valve // shut while there are more

	mu     sync.Mutex // guards below
	box    *member.Outbox
	sent   *bounded.Recent[[2]uint64, offer]
	seeds  [2]maphash.Seed // of the hashes in sent
	depths bool            // a link that lies nearer than an earlier one is news
	data   entry.Encoder
}

// An offer is the best that was ever sent of a URL.
type offer struct {
	depth int32
	state seen.State
}

const maxSent = 1 << 17 // URLs in a generation of what was sent; who is forgotten is sent again

func newOutbox(cfg Config, s *recovery.State) *outbox {
	cfg.Links.First = rand.Uint64() >> 1
	o := &outbox{most: cfg.Outbox, box: member.NewOutbox(cfg.Links), depths: cfg.Depth >= 0,
		sent: bounded.NewRecent[[2]uint64, offer](maxSent), seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
	for _, n := range s.Links.Numbers() {
		d := entry.NewDecoder([]byte(s.Links[n]))
		// an earlier version may have kept others
		if c := d.Candidate(); !d.Bad && frontier.Belongs(c.Host, c.Item.URL) {
			o.box.Restore(n, hostIn(s.Links[n], c.Item.URL), s.Links[n])
		}
	}
	o.weigh()
	return o
}

// hostIn is the host of a link's URL, as a part of the link as encoder.candidate writes it, so that nothing else of it
// is kept.
func hostIn(link, url string) string {
	return item.HostOf(link[strings.Index(link, url):][:len(url)])
}

// weigh holds workers back, or no longer. The caller holds mu.
func (o *outbox) weigh() { o.gate.set(o.box.Bytes() > o.most) }

// news reports whether a candidate says more than what was sent before. It is exact but for 128 bits of hashes that
// nobody can choose; the caller holds mu.
func (o *outbox) news(c *entry.Candidate) bool {
	k := [2]uint64{maphash.String(o.seeds[0], c.Item.URL), maphash.String(o.seeds[1], c.Item.URL)}
	now := offer{c.Item.Depth, entry.StateFor(c.Verdict)}
	was, known := o.sent.Get(k)
	if known && (now.state < was.state || now.state == was.state && (now.depth >= was.depth || !o.depths)) {
		return false
	}
	o.sent.Put(k, now)
	return true
}

// divert takes the candidates out of a batch that are other nodes' business and puts them into the outbox. It is called
// within the ledger's gate.
func (e *Engine) divert(b *batch) {
	if e.peers.router == nil || b.routed {
		return
	}
	kept := 0
	for i := range b.cands {
		c := &b.cands[i]
		if e.peers.router.Ours(c.Host) {
			b.cands[kept], b.urls[kept] = *c, b.urls[i]
			kept++
			continue
		}
		e.peers.outbox.put(e, b, c)
	}
	clear(b.cands[kept:])
	b.cands, b.urls = b.cands[:kept], b.urls[:kept]
}

func (o *outbox) put(e *Engine, b *batch, c *entry.Candidate) {
	if c.Item.Root && c.Rule == "" && !b.rooted {
		e.divertRoot(&c.Item)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.news(c) {
		return
	}
	o.data.Writer = o.data.Writer[:0]
	o.data.Candidate(c)
	data := string(o.data.Writer)
	b.entries.Outgoing(o.box.Put(hostIn(data, c.Item.URL), data), data)
	o.weigh()
}

// Batches returns the links that are to be sent now to those who own their hosts, in batches that their TakeLinks
// understands, and first those that have had no answer for too long. owner says who that is; it is not asked for hosts
// that are this node's, and false, as for hosts that will be, lets links wait. It is called again and again; the more
// seldom, the fuller are the batches.
func (e *Engine) Batches(now time.Time, owner func(host string) (strategy.Node, bool)) []member.Batch {
	if e.peers.outbox == nil {
		return nil
	}
	all := e.peers.outbox.batches(now, func(host string) (strategy.Node, bool) {
		if e.ours(host) {
			return here, true
		}
		return owner(host)
	})
	return slices.DeleteFunc(all, func(b member.Batch) bool {
		if b.To == here {
			_ = e.takeBack(b, now) // after an error nothing more is committed, and the run ends with it
		}
		return b.To == here
	})
}

// here is the owner of hosts that became this node's while links to them waited.
const here strategy.Node = ""

func (o *outbox) batches(now time.Time, owner func(host string) (strategy.Node, bool)) []member.Batch {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.box.Batches(now, owner)
}

// Answered tells what a node answered to a batch: the links that it refused are sent again, by and by; it has
// journalled the others.
func (e *Engine) Answered(from strategy.Node, batch uint64, refused []int, now time.Time) {
	if e.peers.outbox != nil && from != here {
		e.peers.outbox.answered(e.ledger, from, batch, refused, now)
	}
}

func (o *outbox) answered(c *ledger.Ledger, from strategy.Node, batch uint64, refused []int, now time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var enc entry.Encoder
	for _, r := range o.box.Answered(from, batch, refused, now) {
		enc.Delivered(r.First, r.Last)
	}
	o.weigh()
	c.Enqueue(enc.Writer)
}

// takeBack takes links in that have turned out to be this node's.
func (e *Engine) takeBack(from member.Batch, now time.Time) error {
	var b batch
	if err := b.read(from.Data); err != nil {
		return err
	}
	_, _, err := e.takeIn(&b, true, func(refused []int) {
		e.peers.outbox.answered(e.ledger, here, from.Number, refused,
			now)
	})
	return err
}

// Wanted are the hosts whose owners are to be found out, as a [member.Outbox] has them.
func (e *Engine) Wanted() []string {
	if e.peers.outbox == nil {
		return nil
	}
	e.peers.outbox.mu.Lock()
	defer e.peers.outbox.mu.Unlock()
	return e.peers.outbox.box.Wanted()
}

// want has Wanted name a host that others take for this node's.
func (o *outbox) want(host string) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.box.Want(host)
}

// Wake lets links be routed at the next call of Batches that rest for hosts whose owners have become known; all of them
// if hosts is nil.
func (e *Engine) Wake(hosts []string) {
	if e.peers.outbox == nil {
		return
	}
	e.peers.outbox.mu.Lock()
	defer e.peers.outbox.mu.Unlock()
	e.peers.outbox.box.Wake(hosts)
}

// empty reports whether nothing is in the outbox.
func (o *outbox) empty() bool {
	if o == nil {
		return true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.box.Len() == 0
}

// Outbox is how many links wait for other nodes to take them, and the memory that they take, about.
func (e *Engine) Outbox() (links int, bytes int64) {
	if e.peers.outbox == nil {
		return 0, 0
	}
	e.peers.outbox.mu.Lock()
	defer e.peers.outbox.mu.Unlock()
	return e.peers.outbox.box.Len(), e.peers.outbox.box.Bytes()
}

// numbers are those of all links that wait.
func (o *outbox) numbers() []uint64 {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.box.Numbers()
}

// rewrite journals anew, and makes durable, what a checkpoint found in the outbox: it is nowhere else when the journal
// before it is dropped.
func (e *Engine) rewrite(numbers []uint64) error {
	if len(numbers) == 0 {
		return nil
	}
	slices.Sort(numbers)
	for len(numbers) > 0 {
		numbers = e.peers.outbox.rewrite(e.ledger, numbers)
		if err := e.ledger.Commit(); err != nil {
			return err
		}
	}
	return nil
}

// rewrite journals a part, and returns the rest.
func (o *outbox) rewrite(c *ledger.Ledger, numbers []uint64) []uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	var enc entry.Encoder
	for len(numbers) > 0 && len(enc.Writer) < rewriteBytes {
		if link, waits := o.box.Data(numbers[0]); waits {
			enc.Outgoing(numbers[0], link)
		}
		numbers = numbers[1:]
	}
	c.Enqueue(enc.Writer)
	return numbers
}

const rewriteBytes = 4 << 20

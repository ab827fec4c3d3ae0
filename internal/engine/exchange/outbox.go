// Package exchange queues links that other nodes will fetch in an outbox, and decodes batches of links from other
// nodes.
package exchange

import (
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"kumo/internal/base/bounded"
	"kumo/internal/base/item"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
	"kumo/internal/state/entry"
	"kumo/internal/state/frontier"
	"kumo/internal/state/ledger"
	"kumo/internal/state/seen"
)

// A Config configures an Outbox.
type Config struct {
	Links    member.OutboxConfig
	MaxBytes int64           // above this, workers must wait
	Hold     func(hold bool) // called when they must begin or stop waiting; a lock of the outbox is held
	Depths   bool            // a link nearer to a seed than an earlier one to the same URL is news
	Pages    bool            // count links for their pages: see Page
	Slices   *item.Slices    // slices of hosts, each with its own owner; nil: one per host
	Ledger   *ledger.Ledger
}

// An Outbox holds links for other nodes to fetch. The journal has a link in the same batch as the done mark of its
// page. The link stays in the outbox until the answer of the host's owner is in the journal. A nil Outbox is empty.
type Outbox struct {
	cfg Config

	mu    sync.Mutex // guards the fields below
	box   *member.Outbox
	sent  *bounded.Recent[[2]uint64, offer]
	seeds [2]maphash.Seed // for the hashes in sent
	data  entry.Encoder
	pages pages
}

// An offer is the best state and depth sent for a URL.
type offer struct {
	depth  int32
	state  seen.State
	number uint64 // number of the latest link
}

const maxSent = 1 << 17 // URLs per generation of sent; a forgotten one is sent again

// New returns an outbox with the links that an earlier run has left.
func New(cfg Config, left entry.Links) *Outbox {
	cfg.Links.First = rand.Uint64() >> 1
	o := &Outbox{cfg: cfg, box: member.NewOutbox(cfg.Links), sent: bounded.NewRecent[[2]uint64, offer](maxSent),
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
	for _, n := range left.Numbers() {
		d := entry.NewDecoder([]byte(left[n]))
		// earlier versions may have stored other URLs
		if c := d.Candidate(); !d.Bad && frontier.Belongs(c.Host, c.Item.URL) {
			o.box.Restore(n, o.hostIn(left[n], c.Item.URL), left[n])
			if c.Rule != "" {
				o.box.SetFiltered(n)
			}
			o.pages.lastEarlier = n
		}
	}
	o.pages.earlier = o.box.Len()
	o.updateHold()
	return o
}

// hostIn returns the host, or slice, of a link's URL. A host is a substring of the encoded link, so that it needs no
// memory of its own.
func (o *Outbox) hostIn(link, url string) string {
	if o.cfg.Slices != nil {
		return o.cfg.Slices.Of(url)
	}
	return item.HostOf(link[strings.Index(link, url):][:len(url)])
}

// updateHold makes workers wait, or lets them continue. The caller holds mu.
func (o *Outbox) updateHold() { o.cfg.Hold(o.box.Bytes()+o.pages.bytes() > o.cfg.MaxBytes) }

// isNews reports whether a candidate is better than the offer sent for its URL before; if not, it returns that offer.
// It compares 128-bit hashes with secret seeds, so that collisions can be ignored. The caller holds mu.
func (o *Outbox) isNews(c *entry.Candidate) (k [2]uint64, was offer, news bool) {
	k = [2]uint64{maphash.String(o.seeds[0], c.Item.URL), maphash.String(o.seeds[1], c.Item.URL)}
	now := offer{depth: c.Item.Depth, state: entry.StateFor(c.Verdict)}
	was, known := o.sent.Get(k)
	if known && (now.state < was.state || now.state == was.state && (now.depth >= was.depth || !o.cfg.Depths)) {
		return k, was, false
	}
	return k, now, true
}

// Put adds a link for another node to the outbox if it is news, and to the batch with its page's done mark. page, which
// may be nil, then waits for the link until it is taken, even if the link was added for another page.
func (o *Outbox) Put(batch *entry.Encoder, c *entry.Candidate, page *Page) {
	o.mu.Lock()
	defer o.mu.Unlock()
	k, sent, news := o.isNews(c)
	news = news || c.Item.Refetch
	if c.Worth != 0 && !news {
		news = !o.addWorth(batch, sent.number, c.Worth)
	}
	if news {
		if c.Worth != 0 && c.Tag == 0 {
			c.Tag = max(1, rand.Uint32())
		}
		o.data.Writer = o.data.Writer[:0]
		o.data.Candidate(c)
		data := string(o.data.Writer)
		sent.number = o.box.Put(o.hostIn(data, c.Item.URL), data)
		if c.Rule != "" {
			o.box.SetFiltered(sent.number)
		}
		if !c.Item.Refetch {
			o.sent.Put(k, sent)
		}
		batch.Outgoing(sent.number, data)
	}
	if page != nil {
		if _, waits := o.box.Data(sent.number); waits {
			o.pages.add(sent.number, page)
		}
	}
	if news || page != nil {
		o.updateHold()
	}
}

// addWorth adds worth to a link in the outbox that was in no batch yet; it returns false if there is none.
func (o *Outbox) addWorth(batch *entry.Encoder, number uint64, worth float32) bool {
	data, waits := o.box.Data(number)
	if !waits {
		return false
	}
	d := entry.NewDecoder([]byte(data))
	c := d.Candidate()
	if c.Worth == 0 {
		return false
	}
	c.Worth += worth
	o.data.Writer = o.data.Writer[:0]
	o.data.Candidate(&c)
	data = string(o.data.Writer)
	if !o.box.Replace(number, data) {
		return false
	}
	batch.Outgoing(number, data)
	return true
}

// Batches returns the links to send now: see [member.Outbox].
func (o *Outbox) Batches(now time.Time, owner func(host string) (strategy.Node, bool)) []member.Batch {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.box.Batches(now, owner)
}

// Answered records a node's answer to a batch: refused links will be sent again, the others are in the node's journal.
func (o *Outbox) Answered(from strategy.Node, batch uint64, refused []int, now time.Time) {
	for _, p := range o.answered(from, batch, refused, now) {
		p.release()
	}
}

// answered returns the pages of the links that were taken, once for each link.
func (o *Outbox) answered(from strategy.Node, batch uint64, refused []int, now time.Time) (less []*Page) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var enc entry.Encoder
	for _, r := range o.box.Answered(from, batch, refused, now) {
		enc.Delivered(r.First, r.Last)
		if o.cfg.Pages {
			less = o.pages.remove(r, less)
		}
	}
	o.updateHold()
	o.cfg.Ledger.Enqueue(enc.Writer)
	return less
}

// Wanted returns the hosts whose owners are unknown, as [member.Outbox] does.
func (o *Outbox) Wanted() (hosts []string, links []int) {
	if o == nil {
		return nil, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.box.Unrouted()
}

// Waiting returns how many links to a host wait until its owner is known.
func (o *Outbox) Waiting(host string) int {
	if o == nil {
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.box.Deferred(host)
}

// Want adds a host to Wanted that another node takes for this node's.
func (o *Outbox) Want(host string) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.box.AddUnrouted(host)
}

// Wake lets the next call of Batches route links whose owners have become known: those to hosts, or all if hosts is
// nil.
func (o *Outbox) Wake(hosts []string) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.box.RetryDeferred(hosts)
}

// Size returns how many links the outbox has, and about how much memory they take.
func (o *Outbox) Size() (links int, bytes int64) {
	if o == nil {
		return 0, 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.box.Len(), o.box.Bytes()
}

// Empty reports whether the outbox has no links.
func (o *Outbox) Empty() bool {
	links, _ := o.Size()
	return links == 0
}

// Earlier returns how many links of earlier processes are left.
func (o *Outbox) Earlier() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pages.earlier
}

// Has reports whether the outbox has a link to a URL. It goes through all links.
func (o *Outbox) Has(url string) bool {
	if o == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, n := range o.box.Numbers() {
		data, _ := o.box.Data(n)
		d := entry.NewDecoder([]byte(data))
		if strings.Contains(data, url) && d.Candidate().Item.URL == url {
			return true
		}
	}
	return false
}

// Numbers returns the numbers of all links.
func (o *Outbox) Numbers() []uint64 {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.box.Numbers()
}

// Rewrite writes the links that a checkpoint found in the outbox to the journal again, durably: the part of the journal
// that has them is about to be dropped.
func (o *Outbox) Rewrite(numbers []uint64) error {
	slices.Sort(numbers)
	for len(numbers) > 0 {
		numbers = o.rewrite(numbers)
		if err := o.cfg.Ledger.Commit(); err != nil {
			return err
		}
	}
	return nil
}

// rewrite journals some of the links, and returns the numbers of the rest.
func (o *Outbox) rewrite(numbers []uint64) []uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	var enc entry.Encoder
	for len(numbers) > 0 && len(enc.Writer) < rewriteBytes {
		if link, waits := o.box.Data(numbers[0]); waits {
			enc.Outgoing(numbers[0], link)
		}
		numbers = numbers[1:]
	}
	o.cfg.Ledger.Enqueue(enc.Writer)
	return numbers
}

const rewriteBytes = 4 << 20

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

// A Config says how an Outbox works.
type Config struct {
	Links    member.OutboxConfig
	MaxBytes int64           // bytes, beyond which workers are to wait
	Hold     func(hold bool) // is told whether they are; called with a lock of the outbox held
	Depths   bool            // a link that lies nearer than an earlier one is news
	Pages    bool            // links are counted for the pages that have them: see Page
	Slices   *item.Slices    // that hosts are cut into, each with an owner of its own; nil: into one
	Ledger   *ledger.Ledger
}

// An Outbox is what a node has found and others are to fetch. What is put there is in the journal's same batch as
// the done mark of the page that has the link, and stays there until the answer of the host's owner is journalled. A
// nil Outbox is empty.
type Outbox struct {
	cfg Config

	mu    sync.Mutex // guards below
	box   *member.Outbox
	sent  *bounded.Recent[[2]uint64, offer]
	seeds [2]maphash.Seed // of the hashes in sent
	data  entry.Encoder
	pages pages
}

// An offer is the best that was ever sent of a URL.
type offer struct {
	depth  int32
	state  seen.State
	number uint64 // of the last link
}

const maxSent = 1 << 17 // URLs in a generation of what was sent; who is forgotten is sent again

// New makes an outbox with what an earlier run has left in it.
func New(cfg Config, left entry.Links) *Outbox {
	cfg.Links.First = rand.Uint64() >> 1
	o := &Outbox{cfg: cfg, box: member.NewOutbox(cfg.Links), sent: bounded.NewRecent[[2]uint64, offer](maxSent),
		seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
	for _, n := range left.Numbers() {
		d := entry.NewDecoder([]byte(left[n]))
		// an earlier version may have kept others
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

// hostIn is the host of a link's URL, as a part of the link as entry.Encoder writes it, so that nothing else of it is
// kept; or the slice of it that the URL is in.
func (o *Outbox) hostIn(link, url string) string {
	if o.cfg.Slices != nil {
		return o.cfg.Slices.Of(url)
	}
	return item.HostOf(link[strings.Index(link, url):][:len(url)])
}

// updateHold holds workers back, or no longer. The caller holds mu.
func (o *Outbox) updateHold() { o.cfg.Hold(o.box.Bytes()+o.pages.bytes() > o.cfg.MaxBytes) }

// isNews reports whether a candidate says more than what was sent before, and if not, what that was. It is exact but for
// 128 bits of hashes that nobody can choose; the caller holds mu.
func (o *Outbox) isNews(c *entry.Candidate) (k [2]uint64, was offer, news bool) {
	k = [2]uint64{maphash.String(o.seeds[0], c.Item.URL), maphash.String(o.seeds[1], c.Item.URL)}
	now := offer{depth: c.Item.Depth, state: entry.StateFor(c.Verdict)}
	was, known := o.sent.Get(k)
	if known && (now.state < was.state || now.state == was.state && (now.depth >= was.depth || !o.cfg.Depths)) {
		return k, was, false
	}
	return k, now, true
}

// Put keeps a link that is another node's business, if it is news, and writes so into the batch that has its page's
// done mark. The page, nil where none is to know, has the link until it is taken, whoever put it.
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

// addWorth adds to what a link is worth that waits to be sent, and was in no batch yet; false if there is none.
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

// Batches returns the links that are to be sent now: see [member.Outbox].
func (o *Outbox) Batches(now time.Time, owner func(host string) (strategy.Node, bool)) []member.Batch {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.box.Batches(now, owner)
}

// Answered tells what a node answered to a batch: the links that it refused are sent again, by and by; it has
// journalled the others.
func (o *Outbox) Answered(from strategy.Node, batch uint64, refused []int, now time.Time) {
	for _, p := range o.answered(from, batch, refused, now) {
		p.release()
	}
}

// answered returns the pages that have a link less, each as often as it has one.
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

// Wanted are the hosts whose owners are to be found out, as a [member.Outbox] has them.
func (o *Outbox) Wanted() (hosts []string, links []int) {
	if o == nil {
		return nil, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.box.Unrouted()
}

// Waiting is how many links to a host wait until it is known whose it is.
func (o *Outbox) Waiting(host string) int {
	if o == nil {
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.box.Deferred(host)
}

// Want has Wanted name a host that others take for this node's.
func (o *Outbox) Want(host string) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.box.AddUnrouted(host)
}

// Wake lets links be routed at the next call of Batches that rest for hosts whose owners have become known; all of them
// if hosts is nil.
func (o *Outbox) Wake(hosts []string) {
	if o == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.box.RetryDeferred(hosts)
}

// Size is how many links wait, and the memory that they take, about.
func (o *Outbox) Size() (links int, bytes int64) {
	if o == nil {
		return 0, 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.box.Len(), o.box.Bytes()
}

// Empty reports whether no link waits.
func (o *Outbox) Empty() bool {
	links, _ := o.Size()
	return links == 0
}

// Earlier is how many of the links wait that earlier processes have put.
func (o *Outbox) Earlier() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.pages.earlier
}

// Has reports whether a link to a URL waits. It looks at all links.
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

// Numbers are those of all links that wait.
func (o *Outbox) Numbers() []uint64 {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.box.Numbers()
}

// Rewrite journals anew, and makes durable, what a checkpoint found in the outbox: it is nowhere else when the journal
// before it is dropped.
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

// rewrite journals a part, and returns the rest.
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

package transfer

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
	"kumo/internal/content/cookies"
	"kumo/internal/state/frontier"
	"kumo/internal/state/seen"
)

// A Holding is the state of a node's hosts: an engine's, or the one rebuilt from a dead node.
type Holding struct {
	Frontier  *frontier.Frontier
	DB        *seen.DB
	Abandoned func(f func(it item.Item) error) error // calls f with the abandoned URLs
	// reports whether skipped.jsonl has reported the URL as failed with its host
	Reported  func(url string) bool
	Excluded  func(host string) bool // reports whether a host is not held
	Unsettled Unsettled              // of a dead node: its unsettled transfers
	Now       func() time.Time
	Worth     func(url string) float32 // returns the worth of links to a pending URL; may be nil
	Cookies   *cookies.Jar             // nil if cookies are not stored
	// RefetchHosts is for a dead node: hosts with items that must be fetched again. These items are exported even if
	// the host is excluded.
	RefetchHosts map[string]bool
	// Refetch reports whether a pending URL must be fetched again although its item does not contain that; nil if all
	// items do.
	Refetch func(url string) bool
}

// Forget excludes a dead node's hosts from further exports.
func (h *Holding) Forget(gone member.Moved) {
	except, stays := h.Excluded, h.Unsettled.stayingHosts(gone)
	h.Excluded = func(host string) bool { return except(host) || !stays[host] && gone(host, 0) }
}

// An Export reads the state of hosts in chunks for [Endpoint.Import]: first the pending URLs from the frontier and the
// abandoned queue, then all known URLs in one pass. It changes nothing. It must be used by one goroutine.
type Export struct {
	*Holding
	Sizes
	owner        func(host string) strategy.Node
	refetchOwner func(host string) strategy.Node // for items to be fetched again, if owner returns ""
	iterator     *frontier.HostIterator
	writers      map[strategy.Node]*ChunkWriter
	yield        func(nodeChunk, error) bool
	stopped      bool                // the reader has stopped
	cookies      map[cookieHost]bool // exported hosts that have cookies

	next func() (nodeChunk, error, bool)
	stop func()
}

// A cookieHost is a host, or slice, whose cookies are sent to a node.
type cookieHost struct {
	to   strategy.Node
	host string
}

type nodeChunk struct {
	to   strategy.Node
	data []byte
}

// Export starts to read the state of hosts with other owners. owner returns the owner of a host, "" if the host stays.
// Until Close, nothing may be added to these hosts or done; see Drain.
func (h *Holding) Export(owner func(host string) strategy.Node) (*Export, error) {
	x := &Export{Holding: h, Sizes: Sizes{Block: BlockBytes, Chunk: ChunkBytes}, writers: map[strategy.Node]*ChunkWriter{}}
	x.owner = func(host string) strategy.Node {
		if h.Excluded(host) {
			return ""
		}
		return owner(host)
	}
	x.refetchOwner = func(host string) strategy.Node {
		if h.RefetchHosts[host] {
			return owner(host)
		}
		return ""
	}
	x.iterator = h.Frontier.Iterate(func(host string) bool { return x.owner(host) != "" || x.refetchOwner(host) != "" })
	x.next, x.stop = iter.Pull2(x.all)
	return x, nil
}

// Next returns the next chunk and its receiver, "" at the end.
func (x *Export) Next() (to strategy.Node, data []byte, err error) {
	p, err, _ := x.next()
	return p.to, p.data, err
}

// Close ends the export.
func (x *Export) Close() error {
	x.stop()
	x.iterator.Close()
	return nil
}

func (x *Export) all(yield func(nodeChunk, error) bool) {
	x.yield = yield
	for _, part := range []func() error{x.waiting, x.abandonedHosts, x.known, x.setCookies} {
		if err := part(); err != nil && !x.stopped {
			yield(nodeChunk{}, err)
			return
		}
		if x.stopped {
			return
		}
	}
	for _, to := range x.nodes() {
		if p := x.writers[to]; !p.empty() && !x.send(to, p) {
			return
		}
	}
}

func (x *Export) nodes() []strategy.Node { return slices.Sorted(maps.Keys(x.writers)) }

const maxWriters = 128

func (x *Export) writer(to strategy.Node) (*ChunkWriter, error) {
	if p := x.writers[to]; p != nil {
		return p, nil
	}
	if len(x.writers) >= maxWriters { // send the fullest
		all := x.nodes()
		fullest := slices.MaxFunc(all, func(a, b strategy.Node) int { return x.writers[a].size() - x.writers[b].size() })
		x.send(fullest, x.writers[fullest])
		delete(x.writers, fullest)
	}
	p, err := NewChunkWriter(x.Now(), x.Sizes)
	if err == nil {
		p.worth = x.Worth
		x.writers[to] = p
	}
	return p, err
}

// send yields a chunk, and reports whether the reader wants more.
func (x *Export) send(to strategy.Node, p *ChunkWriter) bool {
	if !x.stopped {
		x.stopped = !x.yield(nodeChunk{to, p.Chunk()}, nil)
	}
	return !x.stopped
}

// flushFull ends a full block, and sends a full chunk. It reports whether the current group must be started again.
func (x *Export) flushFull(to strategy.Node, p *ChunkWriter) bool {
	if !p.full() {
		return false
	}
	if p.endBlock() {
		x.send(to, p)
	}
	return true
}

func (x *Export) waiting() error {
	for !x.stopped {
		s, err := x.iterator.Next()
		if s == nil || err != nil {
			return err
		}
		to, some := x.owner(s.Key), false
		if to == "" {
			to, some = x.refetchOwner(s.Key), true
		}
		p, err := x.writer(to)
		if err != nil {
			return err
		}
		begun := false // a host with only robots.txt fetches of other hosts is not held
		for !x.stopped {
			it, err := s.Next()
			if err != nil {
				return err
			}
			if it == nil {
				break
			}
			if x.Refetch != nil && x.Refetch(it.URL) {
				it.Refetch = true
			}
			if some && !it.Refetch {
				continue
			}
			if !begun {
				x.recordCookies(to, s.Key)
				p.BeginPending(s.Key, HostTiming{s.RequestedDelay, s.Wait})
			}
			it.Reported = it.Reported || x.Reported(it.URL)
			p.Item(it)
			begun = !x.flushFull(to, p)
		}
	}
	return nil
}

// recordCookies records that data of a host is sent to a node, so its cookies are, too.
func (x *Export) recordCookies(to strategy.Node, host string) {
	if x.Cookies.Len() == 0 {
		return
	}
	if k := (cookieHost{to, host}); !x.cookies[k] && x.Cookies.Has(hostname(host)) {
		if x.cookies == nil {
			x.cookies = map[cookieHost]bool{}
		}
		x.cookies[k] = true
	}
}

func hostname(slice string) string { return cookies.HostOf(item.HostOfSlice(slice)) }

// setCookies writes the cookies of the sent hosts. Responses that arrive meanwhile concern other nodes, as these hosts
// are no longer visited here.
func (x *Export) setCookies() error {
	for k := range x.cookies {
		p, err := x.writer(k.to)
		if err != nil || x.stopped {
			return err
		}
		p.Cookies(k.host, x.Cookies.AppendForHost(nil, hostname(k.host)))
		x.flushFull(k.to, p)
	}
	return nil
}

func (x *Export) clock(host string) (HostTiming, frontier.HostInfo) {
	i, met := x.Frontier.Host(host)
	if !met {
		return HostTiming{}, i
	}
	return HostTiming{i.RequestedDelay, i.Next.Sub(x.Now())}, i
}

func (x *Export) abandonedHosts() error {
	last := map[strategy.Node]string{} // the current host of each receiver
	return x.Abandoned(func(it item.Item) error {
		host := x.Frontier.Slices().Of(it.URL)
		to := x.owner(host)
		if to == "" || x.stopped {
			return nil
		}
		p, err := x.writer(to)
		if err != nil {
			return err
		}
		if last[to] != host || len(p.group) == 0 {
			c, _ := x.clock(host)
			x.recordCookies(to, host)
			p.BeginPending(host, c)
			last[to] = host
		}
		p.Item(&it)
		if x.flushFull(to, p) {
			delete(last, to)
		}
		return nil
	})
}

func (x *Export) known() error {
	slices := x.Frontier.Slices()
	wanted := originFilter{slices: slices, of: func(host string) bool { return x.owner(host) != "" }}
	hosts, groups := originOrder{slices: slices}, originGroups{Export: x, receivers: map[string]receiver{}}
	for entry, err := range x.DB.Select(wanted.match) {
		if err != nil {
			return err
		}
		if host, news := hosts.next(entry.URL); news {
			err = groups.begin(strings.Clone(host), strings.Clone(hosts.origin))
		} else if slices != nil {
			err = groups.resume(host)
		}
		if err != nil {
			return err
		}
		if groups.add(&entry); x.stopped {
			return nil
		}
	}
	return nil
}

// originGroups writes the known URLs of an origin. If its host is divided into slices, their URLs are interleaved, and
// all that go to one node are in one group. The reader determines the slice of each.
type originGroups struct {
	*Export
	origin    string
	to        receiver
	receivers map[string]receiver // by slice; those with the same node share a group
}

// A receiver is the node that receives a host's URLs, "" for none, and the group in which they are written.
type receiver struct {
	to    strategy.Node
	group *originGroup
}

type originGroup struct {
	c HostTiming
	p *ChunkWriter
}

// begin starts a host, or a slice that is new.
func (g *originGroups) begin(host, origin string) error {
	if origin != g.origin {
		clear(g.receivers)
		g.origin = origin
	}
	c, i := g.clock(host)
	g.to = receiver{}
	if !i.Away {
		g.to.to = g.owner(host)
	}
	defer func() { g.receivers[host] = g.to }()
	if g.to.to == "" {
		return nil
	}
	g.recordCookies(g.to.to, host)
	for _, other := range g.receivers {
		if other.to == g.to.to {
			g.to.group = other.group
		}
	}
	if g.to.group == nil {
		g.to.group = &originGroup{}
	}
	if most := g.to.group.c.maxOf(c); g.to.group.p == nil || most != g.to.group.c {
		g.to.group.c, g.to.group.p = most, nil // the timing is written at the start of a group
	}
	return g.write()
}

// resume continues with a slice that is not new.
func (g *originGroups) resume(host string) error {
	if g.to = g.receivers[host]; g.to.to == "" {
		return nil
	}
	return g.write()
}

// write starts a group, unless the current one is still open.
func (g *originGroups) write() error {
	p, err := g.writer(g.to.to)
	if err != nil || g.to.group.p == p {
		return err
	}
	g.to.group.p = p
	p.BeginKnown(g.origin, g.to.group.c)
	return nil
}

func (g *originGroups) add(entry *seen.Entry) {
	if g.to.to == "" {
		return
	}
	p := g.to.group.p
	p.Entry(entry.URL[len(g.origin):], entry)
	if g.flushFull(g.to.to, p) {
		p.BeginKnown(g.origin, g.to.group.c)
	}
}

// Holding returns the current state of the engine's hosts, without those of incoming transfers.
func (r *Endpoint) Holding() *Holding {
	r.mu.Lock()
	came := r.Unsettled.IncomingHosts()
	r.mu.Unlock()
	return &Holding{Frontier: r.Frontier, DB: r.DB, Abandoned: r.Abandoned.EachCurrent, Reported: r.Reported,
		Now: r.Now, Worth: r.Worth, Cookies: r.Cookies,
		Excluded: func(host string) bool { return came[host] }}
}

// Export starts to read the state of the engine's hosts with other owners; see [Holding.Export].
func (r *Endpoint) Export(owner func(host string) strategy.Node) (*Export, error) {
	if r.DB == nil {
		return nil, ErrNoDB
	}
	return r.Holding().Export(owner)
}

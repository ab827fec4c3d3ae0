package sim

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"time"

	"kumo/internal/cluster/member"
	"kumo/internal/cluster/member/mesh"
	"kumo/internal/cluster/member/peer"
	"kumo/internal/cluster/overlay"
	"kumo/internal/cluster/strategy"
)

// A meshNode is a node with its disk. A node that has lost its disk is never started again.
type meshNode struct {
	w           *meshWorld
	name        strategy.Node
	place       int
	disk        *meshDisk
	proc        *meshProcess // nil while none runs
	lives       int
	rate        MeshRate
	uploaded    map[string]bool // record files in the storage location
	repairedFor time.Duration   // time it has had to copy its data since the last loss of disks
}

// A meshDisk is the state that survives a process.
type meshDisk struct {
	history meshHistory
	engine  map[int32]*meshEngine
	links   map[uint64]meshKey // outbox
	record  mesh.RecordVersion
	terms   mesh.AgreedTerms
	chunks  map[mesh.ChunkID][]byte
	files   meshFiles
	cookies map[int32]bool // hosts whose cookie the node has
}

// A meshHistory is a node's history: what it knows of each host.
type meshHistory map[int32]*meshRecord

// A meshRecord is a host's part of a history: sets of dispatched and of done URLs. URLs whose records were lost are in
// afterLoss, by the number of losses.
type meshRecord struct {
	open, done uint64
	afterLoss  *meshRecord
}

// A meshEngine is an engine's state of a host. All are sets of URLs: known; fetched, but with links that are not
// claimed (unfinished); finished.
type meshEngine struct {
	known, unfinished, finished uint64
	losses                      [64]uint8 // how often each page's record was lost
}

// A meshProcess is one run of a node's program.
type meshProcess struct {
	w *meshWorld
	n *meshNode
	stepper
	leaving       bool
	diskBusyUntil moment // when its current writes end
	view          *mesh.View

	out           *member.Outbox
	pumping       bool
	offered       map[int32]uint64 // links put into the outbox by this process
	fetches       fetchQueue
	pendingByLink map[uint64]*pendingFinish
	finished      map[int32]uint64 // pages finished by this process
	hosts         meshHosts
	waiting       int64 // pending at the last load report
	fetched       int   // since then
	requests      int   // in total
	lastRiskID    uint64
	onSafe        map[uint64]func()
}

// A pendingFinish has fetched pages to finish when all their links are claimed.
type pendingFinish struct {
	pages     []url
	unclaimed int
}

// A meshHost is a process's state of a host.
type meshHost struct {
	fetching  bool
	releasing bool
	scheduled bool // its next request is scheduled
	next      moment
}

// meshHosts has the hosts that a process has state of.
type meshHosts map[int32]*meshHost

func (m meshHosts) of(h int32) *meshHost {
	s := m[h]
	if s == nil {
		s = &meshHost{}
		m[h] = s
	}
	return s
}

func (w *meshWorld) join() *meshNode {
	n := &meshNode{w: w, name: strategy.Node(fmt.Sprintf("n%d~1", len(w.nodes))), place: len(w.nodes)}
	n.disk = &meshDisk{history: meshHistory{}, engine: map[int32]*meshEngine{}, links: map[uint64]meshKey{},
		chunks: map[mesh.ChunkID][]byte{}, files: meshFiles{risks: map[strategy.Node]map[string][]byte{}},
		cookies: map[int32]bool{}}
	n.uploaded = map[string]bool{}
	if n.place < len(w.cfg.Rates) {
		n.rate = w.cfg.Rates[n.place]
	}
	w.nodes, w.named[n.name] = append(w.nodes, n), n
	w.figures.Joined++
	n.start()
	return n
}

func (n *meshNode) start() {
	w := n.w
	n.lives++
	n.repairedFor = 0
	p := &meshProcess{w: w, n: n, offered: map[int32]uint64{}, pendingByLink: map[uint64]*pendingFinish{},
		finished: map[int32]uint64{},
		hosts:    meshHosts{}, onSafe: map[uint64]func(){}}
	p.stepper = stepper{lifecycle: lifecycle{k: w.k, began: w.k.now}, onActions: p.executeAll, processor: w.cfg.Processor,
		stepTime: &w.figures.Processor}
	n.proc = p
	cfg := peer.Config{Overlay: w.cfg.Overlay}
	cfg.Overlay.Self, cfg.Overlay.Seed = overlay.Contact{Node: string(n.name)}, w.k.rng.Uint64()
	cfg.Mesh = mesh.Config{Backups: w.cfg.Backups, LostAfter: w.cfg.LostAfter, HasPending: p.hasPending,
		ShareCookies: w.cfg.ShareCookies,
		Balance: mesh.BalanceConfig{Area: n.rate.Area, Interval: w.cfg.Interval, Partial: w.cfg.Partial,
			Off: !w.cfg.Busy},
		Terms:  n.terms(),
		Status: mesh.StatusConfig{Engine: p.isIdle}, Process: w.k.rng.Uint64(),
		Earlier: mesh.Earlier{MetOthers: len(w.nodes) > 1, Record: n.disk.record, Terms: n.disk.terms,
			Risks: n.disk.files.lengths(), Chunks: slices.Collect(maps.Keys(n.disk.chunks))},
		ReadChunk: func(id mesh.ChunkID) ([]byte, error) { return n.disk.chunks[id], nil }}
	p.peer = peer.New(cfg)
	p.view = p.peer.Machine().View()
	p.out = member.NewOutbox(member.OutboxConfig{First: uint64(n.lives) << 40})
	p.restore()
	p.executeAll(p.peer.Start(p.now(), nil))
	p.join()
	w.live = append(w.live, p)
	if !w.cfg.Paper {
		p.reportLoad()
	}
	p.pump()
}

// terms returns the terms that the node is started with. With Paper, all but the first node learn them from others.
func (n *meshNode) terms() (t mesh.Terms) {
	if n.w.cfg.Paper {
		t.Strategy = mesh.StrategyPaper
		if n.place == 0 {
			t.Block, t.Interval = n.w.cfg.Block, n.w.cfg.Interval
		}
	}
	return t
}

// join gives the process contacts through which it joins the network. It repeats this while the process knows no other
// node, as all earlier contacts may have left.
func (p *meshProcess) join() {
	w := p.w
	p.after(30*time.Second, p.join)
	if p.peer.Overlay().Len() > 0 {
		return
	}
	var join peer.Join
	for range min(3, len(w.live)) {
		if q := w.live[w.k.rng.IntN(len(w.live))]; q != p {
			join.Contacts = append(join.Contacts, overlay.Contact{Node: string(q.n.name)})
		}
	}
	if len(w.live) == 0 || len(join.Contacts) > 0 {
		p.deliver(join)
	}
}

// restore restores the state of machine and outbox from the disk.
func (p *meshProcess) restore() {
	d := p.n.disk
	for _, id := range slices.Sorted(maps.Keys(d.links)) {
		k := d.links[id]
		p.out.Restore(id, p.w.web.hosts[k.host()].name, linkData(k))
	}
	left := &pendingFinish{unclaimed: len(d.links)}
	for id := range d.links { // their pages are unknown after a restart: all wait for all links
		p.pendingByLink[id] = left
	}
	for _, h := range slices.Sorted(maps.Keys(d.history)) {
		p.inbox = append(p.inbox, mesh.Opened{Host: p.w.web.hosts[h].name, Open: bits.OnesCount64(d.history[h].open)})
	}
	for _, h := range slices.Sorted(maps.Keys(d.engine)) {
		p.inbox = append(p.inbox, mesh.Holding{Host: p.w.web.hosts[h].name})
		for set := d.engine[h].unfinished; set != 0; set &= set - 1 {
			left.pages = append(left.pages, at(h, lowest(set)))
		}
		p.scheduleHost(h)
	}
	if left.unclaimed == 0 {
		p.finishSafely(left)
	}
	p.uploadPending()
}

// afterDisk calls f after a simulated write. Writes are done one after another.
func (p *meshProcess) afterDisk(f func()) {
	p.diskBusyUntil = max(p.diskBusyUntil, p.w.k.now+p.w.k.uniform(5*time.Millisecond, 30*time.Millisecond))
	p.after(p.diskBusyUntil-p.w.k.now, f)
}

func (p *meshProcess) executeAll(actions []peer.Action) {
	for _, a := range actions {
		if p.ended {
			return
		}
		if mend := p.w.cfg.parts.replace; mend != nil && mend(p, a) {
			continue
		}
		p.execute(a)
	}
}

func (p *meshProcess) execute(a peer.Action) {
	w := p.w
	switch a := a.(type) {
	case peer.Send:
		kind := MeshMessage
		if a.Data[0] == 'o' {
			kind = OverlayMessage
		}
		p.send(strategy.Node(a.To.Node), kind, len(a.Data), envelope{from: p.n, data: a.Data})
	case peer.Wake:
		p.wakeAt(a.At)
	case mesh.Publish:
		p.view = a.View
	case mesh.Answer:
		from := p.n.name
		p.send(a.To, LinksMessage, 8+2*len(a.Refused), envelope{f: func(o *meshProcess) { o.answered(from, a) }})
	case mesh.Routed:
		p.out.RetryDeferred(a.Hosts)
		p.pump()
	case mesh.Record:
		p.afterDisk(func() {
			w.figures.Recorded += len(a.Links)
			p.deliver(p.n.disk.history.record(w.web.byName[a.Host], a))
		})
	case mesh.Read:
		p.afterDisk(func() { p.deliver(p.n.disk.history.read(w.web.byName[a.Host], a)) })
	case mesh.Sweep:
		p.afterDisk(func() { p.deliver(p.n.disk.history.sweep(w.web, a)) })
	case mesh.Drop:
		p.afterDisk(func() { delete(p.n.disk.history, w.web.byName[a.Host]) })
	case mesh.Enqueue:
		p.afterDisk(func() { p.deliver(p.enqueue(a)) })
	case mesh.Release:
		p.hosts.of(w.web.byName[a.Host]).releasing = true
		p.release(w.web.byName[a.Host])
	case mesh.ReadCookies:
		read := mesh.CookiesRead{ID: a.ID}
		if p.n.disk.cookies[w.web.byName[a.Host]] {
			read.Data = []byte("session")
		}
		p.deliver(read)
	case mesh.AddCookies:
		p.n.disk.cookies[w.web.byName[a.Host]] = true
		p.deliver(mesh.CookiesAdded{ID: a.ID})
	case mesh.Added:
		p.n.disk.chunks[mesh.ChunkIDOf(a.Data)] = a.Data
	case mesh.Changed:
		p.n.disk.record = a.Record
	case mesh.Spare:
		p.deliver(p.selectSpare(a))
	case mesh.ReadRisk, mesh.WriteRisk, mesh.DropRisk, mesh.Safe, mesh.Lost:
		p.handleRisk(a.(mesh.Action))
	case mesh.Left:
		p.onLeft()
	case mesh.Ended:
		p.onCrawlEnd(a)
	case mesh.Measure:
		p.deliver(p.load())
	case mesh.TermsAgreed:
		p.n.disk.terms = a.Terms
	case mesh.Agreed:
	case mesh.Gathered:
		w.gathered = append(w.gathered, a.Tally)
	default:
		panic(fmt.Sprintf("%T", a))
	}
}

func (p *meshProcess) onCrawlEnd(a mesh.Ended) {
	w := p.w
	if a.Version != p.n.disk.record.Version || w.figures.Requests == 0 {
		return // seeds were added since, or none was yet
	}
	w.endsFound = append(w.endsFound, w.k.now)
	if w.endIsEarly() {
		w.figures.EarlyEnds++
	}
}

// endIsEarly reports whether the crawl's end was detected too early. It was not if all backups of each pending page are
// down or paused: a crawl continues without nodes that stay away, and other nodes cannot know their pages.
func (w *meshWorld) endIsEarly() bool {
	for h, reach := range w.web.reachable {
		for pending := reach &^ w.coverage[h].fetched; pending != 0; pending &= pending - 1 {
			page, stopped := uint64(1)<<bits.TrailingZeros64(pending), 0
			for _, n := range w.nodes {
				switch r := n.disk.recordOf(int32(h)); {
				case r == nil || r.open&page == 0:
				case n.proc != nil && !n.proc.paused:
					return true
				default:
					stopped++
				}
			}
			if stopped < w.cfg.Backups {
				return true
			}
		}
	}
	return false
}

// recordOf returns a host's part of the history; nil if there is none.
func (d *meshDisk) recordOf(host int32) *meshRecord {
	if d == nil {
		return nil
	}
	return d.history[host]
}

// An envelope is a message to another node's process: data for its peer, or a function to call. It is a kernel event by
// itself, to save memory.
type envelope struct {
	to   *meshNode
	from *meshNode
	data []byte
	f    func(o *meshProcess)
}

func (p *meshProcess) send(to strategy.Node, kind, size int, l envelope) {
	w := p.w
	w.figures.Messages[kind]++
	w.figures.Bytes[kind] += size
	l.to, l.from = w.named[to], p.n
	if l.to == nil {
		return
	}
	var takes time.Duration
	if l.to != p.n {
		var comes bool
		if takes, comes = w.net.drawTransit(p.n.place, l.to.place, size); !comes {
			return
		}
	}
	w.k.schedule(&l, takes, nil)
	if l.to != p.n && w.k.chance(w.cfg.Replay) {
		again := l
		w.figures.Replayed++
		w.k.schedule(&again, takes+w.k.uniform(time.Second, w.cfg.ReplayAfter), nil)
	}
}

func (l *envelope) do(func()) {
	p := l.to.proc
	switch {
	case p == nil || l.to != l.from && p.w.net.blocked(l.from.place, l.to.place):
	case p.paused:
		p.deferred = append(p.deferred, func() { p.receive(l) })
	default:
		p.receive(l)
	}
}

func (p *meshProcess) receive(l *envelope) {
	if l.f != nil {
		l.f(p)
		return
	}
	p.deliver(peer.Message{From: overlay.Contact{Node: string(l.from.name)}, Data: l.data})
}

func (p *meshProcess) end() {
	p.ended, p.deferred = true, nil
	p.n.proc = nil
	p.w.live = slices.DeleteFunc(p.w.live, func(q *meshProcess) bool { return q == p })
	p.w.figures.addProcess(p)
	p.view, p.out, p.offered, p.pendingByLink, p.hosts, p.inbox, p.actions = nil, nil, nil, nil, nil, nil, nil
	p.peer = nil
}

// wipe loses the disk of a stopped node.
func (n *meshNode) wipe() {
	n.disk = nil
	n.w.lastWipe = n.w.k.now
	n.w.figures.Wiped++
}

func (p *meshProcess) leave() {
	if !p.leaving {
		p.leaving = true
		p.deliver(mesh.Leave{})
	}
}

// onLeft ends the process of a node that has handed over all its data.
func (p *meshProcess) onLeft() {
	if p.out.Len() > 0 {
		p.after(time.Second, p.onLeft)
		return
	}
	d := p.n.disk
	if len(d.engine)+len(d.history) > 0 {
		p.w.violate("%s has left with %d hosts, and %d in its history", p.n.name, len(d.engine), len(d.history))
	}
	p.w.logEvent("%s has left", p.n.name)
	p.end()
	for _, file := range d.files.all {
		p.n.uploaded[file] = true
	}
	p.n.disk = nil
}

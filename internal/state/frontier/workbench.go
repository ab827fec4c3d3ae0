package frontier

import (
	"strings"
	"time"
)

// A workbench contains the hosts in memory, and places each in the schedule. (The name is BUbiNG's.) The frontier's
// lock guards it.
type workbench struct {
	hosts     map[string]*host
	schedule  *schedule
	polite    *politeness
	ranking   *ranking
	queues    *queueStore
	residents *residents
	saver     *saver
	leader    *leader
	load      func(key string) *host // loads a cold host that is in no bucket; returns nil if there is none
	now       func() time.Time
	session   int32 // visits per session

	pending    int // items of hosts in memory
	backingOff int // hosts in memory that back off
	unrecorded int // hosts in memory without a record
}

// host returns a host in memory that the caller may change. It loads or creates the host if needed.
func (b *workbench) host(key string) *host {
	h := b.hosts[key]
	if h == nil && b.load != nil {
		h = b.load(key)
	}
	if h == nil {
		h = b.create(strings.Clone(key), 0)
		b.polite.initNext(&h.clock, b.now())
		h.away = true
	}
	b.saver.saveHost(h)
	return h
}

// create creates a host. id is the number of its record, 0 if it has none.
func (b *workbench) create(key string, id uint32) *host {
	h := b.residents.blank()
	h.key, h.queue.host, h.residence.id = key, key, id
	h.position.class, h.position.seq = idle, b.ranking.nextAge()
	b.polite.configure(&h.clock, key)
	b.ranking.initHost(h)
	b.hosts[key] = h
	h.residence.era = b.saver.currentEra()
	b.residents.admit(h)
	if id == 0 {
		b.unrecorded++
	}
	return h
}

// setRecord sets the number of a host's record, 0 if it has none.
func (b *workbench) setRecord(h *host, id uint32) {
	if h.residence.id = id; id != 0 {
		b.unrecorded--
	}
}

// remove removes a host that leaves memory.
func (b *workbench) remove(h *host) {
	b.pending -= int(h.queue.count())
	b.setBackingOff(h, false)
	b.schedule.remove(h)
	delete(b.hosts, h.key)
	b.residents.remove(h)
}

// classOf returns the class to which a host belongs now.
func (b *workbench) classOf(h *host) class {
	first := h.queue.first()
	switch {
	case h.residence.unread, h.visits.n >= b.polite.connections(&h.clock), first == lastKey,
		len(h.parked) > 0 && first.rank != robotsRank:
		return idle
	case h.visits.n > 0:
		return busy
	case h.clock.suspect:
		return suspect
	case h.clock.session == 0 || h.clock.session >= b.session:
		return inactive
	}
	return sound
}

// place puts a host into its class after a change, and wakes the leader if needed.
func (b *workbench) place(h *host) {
	b.schedule.remove(h)
	h.position.class = b.classOf(h)
	if h.position.class == idle && h.visits.n == 0 {
		b.setBackingOff(h, false)
	}
	b.residents.update(h)
	if h.position.class == idle {
		return
	}
	b.schedule.add(h)
	b.leader.signal()
}

func (b *workbench) setBackingOff(h *host, on bool) {
	if h.clock.backingOff == on {
		return
	}
	if h.clock.backingOff = on; on {
		b.backingOff++
	} else {
		b.backingOff--
	}
}

// push adds new items to a host's queue.
func (b *workbench) push(h *host, items []Item) {
	for i := range items {
		it := items[i]
		h.queue.deepest = b.ranking.assign(&it, h.queue.deepest)
		b.add(h, &it)
	}
	b.place(h)
}

// add adds an item whose rank is set.
func (b *workbench) add(h *host, it *Item) {
	h.away = h.away && it.Robots != "" // a robots.txt fetch belongs to another host
	b.pending++
	b.queues.push(&h.queue, b.ranking.entry(h.key, it))
}

// hold keeps a host in memory until release.
func (b *workbench) hold(h *host) {
	h.residence.held++
	b.place(h)
}

func (b *workbench) release(h *host) {
	h.residence.held--
	b.place(h)
}

// retime adjusts the hosts' times after the delays have changed.
func (b *workbench) retime(delay time.Duration) {
	b.schedule.retime(func() {
		for _, h := range b.hosts {
			b.saver.saveHost(h)
			b.polite.retime(h, delay)
		}
	})
	for _, h := range b.hosts {
		if h.position.class != b.classOf(h) { // the limit of its connections may have changed
			b.place(h)
		}
	}
}

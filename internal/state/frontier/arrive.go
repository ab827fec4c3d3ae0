package frontier

import "time"

// Arrive adds items, perhaps none, of a host that was somebody else's, in their order, and with them what that knew of
// it: the delay that the host asks for, and how long it owes nothing a visit yet.
func (f *Frontier) Arrive(key string, asked, wait time.Duration, items ...Item) {
	f.mu.Lock()
	defer f.mu.Unlock()
	asked = min(asked, max(f.cfg.MaxDelay, 0))
	next := f.cfg.Now().Add(min(max(wait, 0), f.cfg.MaxWait))
	items = f.fitting(key, items)
	for i := range items {
		f.unsuppress(items[i].URL)
	}
	if id := f.coldID(key); id != 0 {
		f.delayCold(id, key, asked)
		r := f.changed(id)
		r.setRequestedDelay(r.requestedDelay(), false)
		s := unpack(r.state)
		s.next = max(s.next, f.disk.tick(next))
		r.state = s.pack()
		f.pushCold(id, key, items)
	} else {
		h := f.host(key)
		h.delay, h.away = asked, false
		if next.After(h.next) {
			h.next = next
		}
		f.pushHot(h, items)
	}
	f.shrink()
}

// unsuppress ends what Suppress said of a URL: of an item that was at the host before it was somebody else's.
func (f *Frontier) unsuppress(url string) {
	if len(f.gone) == 0 {
		return
	}
	k := goneKeyOf(url)
	f.spend(k, f.gone[k])
	delete(f.gone, k)
}

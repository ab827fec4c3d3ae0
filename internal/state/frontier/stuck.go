package frontier

import "slices"

// Stuck reports whether something waits that nothing here will ever hand out: no visit is under way, and no host is to
// come, now or later. What waits is parked then, and who has parked it either ends that or never will.
func (f *Frontier) Stuck() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting == 0 || f.inflight > 0 {
		return false
	}
	for c, q := range f.heaps {
		if len(q) > 0 || f.ready[c].Len() > 0 {
			return false
		}
	}
	d := f.disk
	switch {
	case d == nil:
		return true
	case len(d.unread) > 0:
		return false
	case d.eligible == 0:
		return true
	}
	for c := range d.calendars {
		if _, some := d.nextWake(class(c)); some {
			return false
		}
	}
	return true
}

// Parked are the origins for which a host is parked, sorted.
func (f *Frontier) Parked(key string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var parked map[string]bool
	if h := f.hosts[key]; h != nil {
		parked = h.parked
	} else if f.disk != nil {
		parked = f.disk.parked[f.disk.table.find(f.disk.table.identity(key))]
	}
	all := make([]string, 0, len(parked))
	for origin := range parked {
		all = append(all, origin)
	}
	slices.Sort(all)
	return all
}

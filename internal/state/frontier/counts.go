package frontier

// Counts is the frontier at a glance.
type Counts struct {
	URLs    int // that wait, but for those that are suppressed
	Active  int // hosts with a request under way
	Waiting int // hosts with URLs whose time has not come, or that have no place yet
	Backing int // hosts that are left alone after failures or at their own wish
	Hosts   int // ever met
	Crowd   Crowd
}

// Counts counts.
func (f *Frontier) Counts() Counts {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := Counts{URLs: max(0, f.waiting-f.going), Active: f.active, Backing: f.backing, Hosts: f.known, Crowd: f.crowd()}
	for cl := range f.heaps {
		if class(cl) != busy {
			c.Waiting += len(f.heaps[cl]) + f.ready[cl].Len()
		}
	}
	if f.disk != nil {
		c.Waiting += f.disk.eligible + len(f.disk.unread)
	}
	c.Waiting = max(0, c.Waiting-c.Backing)
	return c
}

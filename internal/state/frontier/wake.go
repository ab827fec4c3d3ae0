package frontier

// never is before all ticks.
const never = -1 << 62

// load ends a bucket: hosts whose time comes until a tick come into memory, the others are put where their time is. It
// may be called again after an error.
func (f *Frontier) load(b *bucket, soon int64) error {
	d := f.disk
	parts, err := f.parts(b)
	if err != nil {
		return err
	}
	b.closed = true
	for len(parts) > 0 {
		n := sameHost(parts)
		if err := f.loadHost(parts[:n], soon); err != nil {
			return err
		}
		parts = parts[n:]
	}
	d.drop(b)
	return nil
}

func (f *Frontier) loadHost(parts []part, soon int64) error {
	d, id := f.disk, parts[0].id
	size, old := 0, false
	for i := range parts {
		size += len(parts[i].data)
		old = old || parts[i].old
	}
	due := d.table.at(id).next() <= soon
	if !due && !old && size <= bigFront {
		f.move(id, parts)
		return nil
	}
	s, err := f.sleeper(parts, d.items[:0])
	if err != nil {
		return err
	}
	d.items = s.items[:0]
	if !due && size <= bigFront {
		f.renew(id, &s)
		return nil
	}
	h := f.makeHot(id, &s)
	if due {
		d.lead(h)
	}
	f.place(h)
	return nil
}

// move puts a cold host where its time is, as it is.
func (f *Frontier) move(id uint32, parts []part) {
	r := f.changed(id)
	b := f.bucketFor(coldClass(r.is(isDoubtful)), r.next())
	r.bucket = b.id
	for i := range parts {
		f.put(b, id, parts[i].data)
	}
}

// renew puts a cold host where its time is, without what an earlier process waited for.
func (f *Frontier) renew(id uint32, s *coldHost) {
	f.waiting -= s.gone
	f.reckon(id, func(r *record) {
		r.count -= uint32(s.gone)
		r.unset(hasRobots)
		if r.bucket = 0; r.count > 0 {
			f.placeCold(id, r, s)
		}
	})
}

// wakeClass reads what cold hosts of a class have whose time has come or is near: a bucket at most.
func (f *Frontier) wakeClass(c class, tick int64) error {
	cal, soon := &f.disk.calendars[c], tick+maxAhead.Milliseconds()
	if len(cal.early) > 0 && tick >= cal.nextSplit() {
		if b := cal.early[0].bucket; !f.disk.wants(c) {
			// Its hosts could only wait in memory, where hosts that are read ahead stay, and keep others out.
			cal.due = append(cal.due, b)
		} else if err := f.loadIf(b, soon); err != nil {
			return err
		}
		cal.early, cal.last = cal.early[1:], tick
	}
	if len(cal.due) > 0 && f.disk.wants(c) {
		if err := f.loadIf(cal.due[0], soon); err != nil {
			return err
		}
		cal.due = cal.due[1:]
	}
	return nil
}

// loadIf loads a bucket that is still there.
func (f *Frontier) loadIf(b *bucket, soon int64) error {
	if f.disk.buckets[b.id] != b {
		return nil
	}
	return f.load(b, soon)
}

// wants says whether more hosts of a class are to be read ahead.
func (d *virtualizer) wants(c class) bool {
	if c == suspect {
		return d.ahead[c] < max(1, d.stock/4)
	}
	return d.ahead[c] < d.stock
}

// nextWake is the tick at which there is something to do for a class, if there is.
func (d *virtualizer) nextWake(c class) (at int64, some bool) {
	cal := &d.calendars[c]
	at = 1<<63 - 1
	if len(cal.slots) > 0 {
		at = cal.look - maxAhead.Milliseconds()
	}
	if len(cal.early) > 0 {
		at = min(at, cal.nextSplit())
	}
	if len(cal.due) > 0 && d.wants(c) {
		at = 0
	}
	return at, at < 1<<63-1
}

func coldClass(doubtful bool) class {
	if doubtful {
		return suspect
	}
	return sound
}

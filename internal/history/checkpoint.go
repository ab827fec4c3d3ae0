package history

import (
	"context"
	"fmt"

	"kumo/internal/journal"
	"kumo/internal/seen/tier"
	"kumo/internal/xor"
)

// journalBytes is how much journal may be read again after a restart, before a checkpoint is due.
const journalBytes = 256 << 20

// Tend does what is due: it makes a checkpoint where memory is full, or the journal long, and merges files of about one
// size. Changes go on meanwhile.
func (d *DB) Tend(ctx context.Context) error {
	d.mu.Lock()
	due := d.active.Bytes() >= d.full || d.frozen != nil || d.log.written >= journalBytes
	d.mu.Unlock()
	if due {
		if err := d.Checkpoint(ctx); err != nil {
			return err
		}
	}
	for more := true; more; {
		var err error
		if more, err = d.tiers.Compact(ctx); err != nil {
			return fmt.Errorf("merge files of the URL history: %w", err)
		}
	}
	return nil
}

// Checkpoint brings all that is in memory to the disk, and lets go of the journal up to there.
func (d *DB) Checkpoint(ctx context.Context) error {
	d.busy.Lock()
	defer d.busy.Unlock()
	return d.checkpoint(ctx, nil)
}

// checkpoint is Checkpoint with busy held. What it writes takes the place of what is cut.
func (d *DB) checkpoint(ctx context.Context, cuts []tier.Cut) error {
	if err := d.write(ctx, nil); err != nil { // what an earlier one could not write
		return err
	}
	if err := d.freeze(); err != nil {
		return err
	}
	if err := d.write(ctx, cuts); err != nil {
		return err
	}
	d.log.commit.Lock()
	defer d.log.commit.Unlock()
	return d.log.journal.Drop(journal.Position(d.tiers.Manifest().Position))
}

// freeze makes all that is in memory what is written next, and the journal's end its position.
func (d *DB) freeze() error {
	d.log.commit.Lock()
	defer d.log.commit.Unlock()
	d.mu.Lock()
	batch, err := d.cut(d.log.cuts + 1)
	if err == nil {
		d.swap(0)
	}
	d.mu.Unlock()
	if err != nil {
		return err
	}
	if batch != nil {
		if err := d.append(batch); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.position, d.log.written = uint64(d.log.journal.End()), 0
	return nil
}

// swap freezes the table; the caller holds mu.
func (d *DB) swap(position uint64) {
	close(d.frees)
	d.frees = make(chan struct{})
	d.frozen, d.active, d.position = d.active, newTable(), position
	d.frozenHosts = d.hosts.source(d.cfg.Self, d.lists)
}

// write brings the frozen table to the disk; the caller holds busy.
func (d *DB) write(ctx context.Context, cuts []tier.Cut) error {
	d.mu.Lock()
	t, hosts, position, err := d.frozen, d.frozenHosts, d.position, d.log.failed
	d.mu.Unlock()
	if t == nil || err != nil {
		return err
	}
	hosts.sort()
	again := *hosts
	err = d.tiers.Replace(ctx, t.source(ctx.Err), &again, func(m *tier.Manifest) {
		m.Position, m.Cuts = position, append(m.Cuts, cuts...)
	})
	if err != nil {
		return fmt.Errorf("write a checkpoint of the URL history: %w", err)
	}
	d.mu.Lock()
	d.frozen, d.frozenHosts = nil, nil
	d.mu.Unlock()
	return nil
}

// Forget forgets all that is known of hosts whose keys are in some parts of the space. It makes a checkpoint, and counts
// what is in parts of lists; the disk has room for others when files are merged. After an error nothing more can be
// changed before the history is opened again, and has forgotten all of it or nothing.
func (d *DB) Forget(ctx context.Context, parts ...xor.Pattern) error {
	var all []forgotten
	for _, p := range parts {
		all = append(all, forgotten{keys: p})
	}
	return d.forget(ctx, all)
}

// ForgetHosts is Forget for single hosts.
func (d *DB) ForgetHosts(ctx context.Context, hosts ...string) error {
	var all []forgotten
	for _, name := range hosts {
		all = append(all, forgotten{keys: xor.Prefix(d.cfg.Key(name), xor.Bits), host: name})
	}
	return d.forget(ctx, all)
}

// A forgotten is a part of the space, or a host in it.
type forgotten struct {
	keys xor.Pattern
	host string
}

func (f *forgotten) has(key []byte) bool {
	p, ok := readPlace(key)
	return ok && f.keys.Contains(p.id()) && (f.host == "" || string(p.name) == f.host)
}

func (f *forgotten) cut(upto uint64) tier.Cut {
	c := tier.Cut{Value: f.keys.Value[:], Mask: f.keys.Mask[:], Upto: upto}
	if f.host != "" {
		c.Value = appendHost(nil, f.keys.Value, f.host)
		c.Mask = make([]byte, len(c.Value))
		for i := range c.Mask {
			c.Mask[i] = 0xff
		}
	}
	return c
}

func (d *DB) forget(ctx context.Context, all []forgotten) error {
	d.change.Lock()
	defer d.change.Unlock()
	d.busy.Lock()
	defer d.busy.Unlock()
	if err := d.write(ctx, nil); err != nil {
		return err
	}
	var cuts []tier.Cut
	for _, f := range all {
		gone, err := d.size(&f)
		if err != nil {
			return err
		}
		d.mu.Lock()
		d.remove(&f, gone)
		d.mu.Unlock()
		cuts = append(cuts, f.cut(d.tiers.Last()))
	}
	err := d.checkpoint(ctx, cuts)
	if err != nil {
		d.mu.Lock()
		d.log.failed = err
		d.mu.Unlock()
	}
	return err
}

// size is of how many URLs something is forgotten, list by list.
func (d *DB) size(f *forgotten) (n listSizes, err error) {
	self, first := xor.Prefix(d.cfg.Self, f.keys.Len()), d.cfg.Self.FirstDiff(f.keys.First())
	if whole := f.keys.Whole() && f.host == ""; whole && (f.keys == self || f.keys == xor.List(d.cfg.Self, first)) {
		d.mu.Lock()
		defer d.mu.Unlock()
		for i, have := range d.lists {
			if f.keys.Contains(xor.List(d.cfg.Self, i-1).First()) {
				n[i] = have
			}
		}
		return n, nil
	}
	err = d.scan(selection{part: f.keys}, nil, func(p place, _ value) bool {
		if p.url && (f.host == "" || string(p.name) == f.host) {
			n[p.id().FirstDiff(d.cfg.Self)+1]++
		}
		return true
	})
	return n, err
}

// remove forgets in memory. The caller holds mu, and nothing is frozen.
func (d *DB) remove(f *forgotten, gone listSizes) {
	for _, ref := range d.active.hosts {
		if f.has(d.active.Key(ref)) {
			d.active.forget(ref)
		}
	}
	for _, h := range d.hosts.byName {
		key := appendHost(nil, d.cfg.Key(h.name), h.name)
		if f.has(key) {
			d.hosts.remove(h)
		}
	}
	for i := range gone {
		d.lists[i] -= gone[i]
	}
}

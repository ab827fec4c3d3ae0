package history

import (
	"bytes"
	"context"
	"fmt"
	"slices"

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
	d.change.Lock()
	defer d.change.Unlock()
	return d.reader.release() // lest it keep files that were merged
}

// Checkpoint brings all that is in memory to the disk, and lets go of the journal up to there.
func (d *DB) Checkpoint(ctx context.Context) error {
	d.busy.Lock()
	defer d.busy.Unlock()
	return d.checkpoint(ctx, nil)
}

// checkpoint is Checkpoint with busy held. What it writes takes the place of what is cut.
func (d *DB) checkpoint(ctx context.Context, cuts []forgotten) error {
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
func (d *DB) write(ctx context.Context, cuts []forgotten) error {
	d.mu.Lock()
	t, hosts, position, err := d.frozen, d.frozenHosts, d.position, d.log.failed
	d.mu.Unlock()
	if t == nil || err != nil {
		return err
	}
	hosts.sort()
	again := *hosts
	err = d.tiers.Replace(ctx, t.source(ctx.Err), &again, func(m *tier.Manifest) {
		m.Position = position
		for i := range cuts {
			m.Cut(cuts[i].mask())
		}
	})
	if err != nil {
		return fmt.Errorf("write a checkpoint of the URL history: %w", err)
	}
	d.mu.Lock()
	d.frozen, d.frozenHosts = nil, nil
	d.mu.Unlock()
	return nil
}

// Forget forgets all that is known of hosts whose keys are in some parts of the space. Where that is anything, it
// counts what is in parts of lists, and makes a checkpoint, for which changes wait; the disk has room for others when
// files are merged. After an error nothing more can be changed before the history is opened again, and has forgotten
// all of it or nothing.
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

// mask is what the keys have in common: their bits of value where mask has ones.
func (f *forgotten) mask() (value, mask []byte) {
	value, mask = f.keys.Value[:], f.keys.Mask[:]
	if f.host != "" {
		value = appendHost(nil, f.keys.Value, f.host)
		mask = bytes.Repeat([]byte{0xff}, len(value))
	}
	return slices.Clone(value), slices.Clone(mask)
}

func (d *DB) forget(ctx context.Context, all []forgotten) error {
	d.change.Lock()
	defer d.change.Unlock()
	d.busy.Lock()
	defer d.busy.Unlock()
	if err := d.write(ctx, nil); err != nil {
		return err
	}
	cuts, err := d.forgetInMemory(all)
	if err == nil && len(cuts) > 0 {
		err = d.checkpoint(ctx, cuts)
	}
	if err != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.log.failed = err
	}
	return err
}

// forgetInMemory forgets in memory, and returns of what there is something to forget.
func (d *DB) forgetInMemory(all []forgotten) (cuts []forgotten, err error) {
	for i := range all {
		gone, any, err := d.size(&all[i], cuts)
		if err != nil {
			return nil, err
		}
		if !any {
			continue
		}
		d.mu.Lock()
		d.remove(&all[i], gone)
		d.mu.Unlock()
		cuts = append(cuts, all[i])
	}
	return cuts, nil
}

// size is of how many URLs something is forgotten, list by list, and whether anything is, but for what was before.
func (d *DB) size(f *forgotten, before []forgotten) (n listSizes, any bool, err error) {
	if d.wholeLists(f) {
		d.mu.Lock()
		for i, have := range d.lists {
			if f.keys.Contains(xor.List(d.cfg.Self, i-1).First()) {
				n[i], any = have, any || have > 0
			}
		}
		d.mu.Unlock()
		if any {
			return n, any, nil
		}
	}
	err = d.scan(selection{part: f.keys}, nil, func(p place, _ value) bool {
		if f.host != "" && string(p.name) != f.host ||
			slices.ContainsFunc(before, func(b forgotten) bool { return b.has(p.host) }) {
			return true
		}
		if any = true; p.url {
			n[p.id().FirstDiff(d.cfg.Self)+1]++
		}
		return true
	})
	return n, any, err
}

// wholeLists reports whether all of some lists, and nothing else, is forgotten.
func (d *DB) wholeLists(f *forgotten) bool {
	nearest := xor.Prefix(d.cfg.Self, f.keys.Len())
	one := xor.List(d.cfg.Self, d.cfg.Self.FirstDiff(f.keys.First()))
	return f.host == "" && (f.keys == nearest || f.keys == one)
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

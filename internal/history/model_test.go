package history

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/journal/file"
	"kumo/internal/vfs"
	"kumo/internal/xor"
)

// keyOf puts hosts into a space so small that some share a key.
const keyBits = 6 // that count of keys

func keyOf(host string) xor.ID { return xor.Of("host", host).Truncate(keyBits) }

var self = xor.Of("self").Truncate(keyBits)

// known is what a history should know: records by host, their URLs in order.
type known map[string]*Record

func (k known) clone() known {
	all := known{}
	for name, r := range k {
		c := *r
		c.URLs = slices.Clone(r.URLs)
		all[name] = &c
	}
	return all
}

// merge unites as the package says, by another way: it returns of how many URLs that is news.
func (k known) merge(r Record) (news int) {
	mine := k[r.Host]
	if mine == nil {
		mine = &Record{Host: r.Host}
		k[r.Host] = mine
	}
	if r.Assigned > mine.Assigned || r.Assigned == mine.Assigned && r.Target > mine.Target {
		mine.Assigned, mine.Target = r.Assigned, r.Target
	}
	for _, u := range r.URLs {
		byHash := func(a, b URL) int { return bytes.Compare(a.Hash[:], b.Hash[:]) }
		i, ok := slices.BinarySearchFunc(mine.URLs, u, byHash)
		if !ok {
			mine.URLs = slices.Insert(mine.URLs, i, u)
			news++
			continue
		}
		old := &mine.URLs[i]
		if old.Done || !u.Done && (u.At < old.At || u.At == old.At && bytes.Compare(u.Data, old.Data) <= 0) {
			continue
		}
		*old = u
		news++
	}
	return news
}

func (k known) String() string {
	var b strings.Builder
	for _, name := range slices.SortedFunc(maps.Keys(k), func(a, b string) int {
		x, y := keyOf(a), keyOf(b)
		return min(1, max(-1, 2*bytes.Compare(x[:], y[:])+strings.Compare(a, b)))
	}) {
		if r := k[name]; len(r.URLs) > 0 || r.Assigned > 0 || r.Target != "" {
			fmt.Fprintln(&b, text(*r))
		}
	}
	return b.String()
}

func text(r Record) string {
	s := fmt.Sprintf("%s to %q at %d:", r.Host, r.Target, r.Assigned)
	for _, u := range r.URLs {
		s += fmt.Sprintf(" %x", u.Hash[:3])
		if !u.Done {
			s += fmt.Sprintf("@%d%q", u.At, u.Data)
		}
	}
	return s
}

// dump is all that a history knows, read in pieces, as known.String has it.
func dump(t testing.TB, d *DB, most int) string {
	t.Helper()
	all := known{}
	for next, begun := Cursor(""), false; next != "" || !begun; begun = true {
		records, n, err := d.Records(xor.Pattern{}, next, most)
		check(t, err)
		for _, r := range records {
			all.merge(r)
		}
		next = n
	}
	return all.String()
}

// agrees holds a history's counts and its queue of hosts against what it should know.
func (k known) agrees(t testing.TB, d *DB) {
	t.Helper()
	want := map[int]*List{}
	d.mu.Lock()
	hosts, queue := maps.Clone(d.hosts.byName), slices.Clone(d.hosts.queue)
	d.mu.Unlock()
	for name, r := range k {
		i := keyOf(name).FirstDiff(self)
		if want[i] == nil {
			want[i] = &List{Index: i}
		}
		open, since := 0, int64(1<<40)
		for _, u := range r.URLs {
			want[i].URLs++
			if !u.Done {
				want[i].Dispatched++
				open++
				since = min(since, max(u.At, r.Assigned))
			}
		}
		switch h := hosts[name]; {
		case open == 0 && h != nil:
			t.Errorf("%s is in the queue with %d URLs, but has none", name, h.open)
		case open > 0 && (h == nil || h.open != open || int64(h.due) > since || int64(h.assigned) != r.Assigned ||
			h.target.Value() != r.Target):
			t.Errorf("%s is in the queue as %+v, want %d URLs since %d at most: %v", name, h, open, since, text(*r))
		}
		delete(hosts, name)
	}
	if len(hosts) > 0 {
		t.Errorf("the queue has %v", hosts)
	}
	for i, h := range queue {
		if h.at != i || i > 0 && queue[(i-1)/2].due > h.due {
			t.Errorf("%s is at %d of the queue, not at %d; due %d", h.name, i, h.at, h.due)
		}
	}
	for _, l := range d.Lists() {
		if want[l.Index] == nil || *want[l.Index] != l {
			t.Errorf("the list is %+v, want %+v", l, want[l.Index])
		}
		delete(want, l.Index)
	}
	for i, l := range want {
		if l.URLs > 0 {
			t.Errorf("list %d is missing: %+v", i, l)
		}
	}
}

// A model is a history, what it should know, and what it may come back with when it dies.
type model struct {
	t    *testing.T
	dice *rand.Rand
	dir  string
	disk *vfs.Faulty
	db   *DB
	log  *file.Journal
	now  int64

	knows  known
	states []known // after each change since the last that is durable, which is the first
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{t: t, dice: rand.New(rand.NewPCG(seed, 0)), dir: t.TempDir(), now: 1_700_000_000, knows: known{}}
	m.states = []known{m.knows.clone()}
	m.open()
	return m
}

func (m *model) open() {
	m.disk = vfs.NewFaulty(vfs.OS)
	j, err := file.Open(m.disk, filepath.Join(m.dir, "journal"), file.Config{Segment: 1 << (10 + m.dice.IntN(6))})
	check(m.t, err)
	db, err := Open(m.disk, filepath.Join(m.dir, "history"), j, Config{Self: self, Key: keyOf,
		Memory: 1 << (17 + m.dice.IntN(3)), Ratio: 2 + m.dice.IntN(3)})
	check(m.t, err)
	m.db, m.log = db, j
}

func (m *model) host() string { return fmt.Sprintf("h%d.example", m.dice.IntN(20)) }

func (m *model) hash() Hash {
	return HashOf(fmt.Sprint(m.dice.IntN(1 + int(m.now-1_700_000_000)/8)))
}

// life does random things; false when the process has died.
func (m *model) life() bool {
	m.now += int64(m.dice.IntN(3))
	switch k := m.dice.IntN(100); {
	case k < 45:
		return m.claim()
	case k < 60:
		return m.done()
	case k < 65:
		r := Record{Host: m.host(), Target: fmt.Sprint("n", m.dice.IntN(4)), Assigned: m.now}
		return m.changed(m.db.Assign(time.Unix(m.now, 0), r.Host, r.Target), func(k known) { k.merge(r) })
	case k < 75:
		return m.merge()
	case k < 88:
		return m.durable(m.db.Sync())
	case k < 90:
		return m.forget()
	case k < 94:
		return m.durable(m.db.Checkpoint(context.Background()))
	case k < 98:
		return m.fine(m.db.Tend(context.Background()))
	}
	if got, want := dump(m.t, m.db, 1+m.dice.IntN(200)), m.knows.String(); got != want {
		m.t.Fatalf("the history knows\n%swant\n%s", got, want)
	}
	m.knows.agrees(m.t, m.db)
	return true
}

func (m *model) claim() bool {
	r := Record{Host: m.host()}
	var items []Item
	for range 1 + m.dice.IntN(5) {
		it := Item{m.hash(), []byte(fmt.Sprint("item", m.dice.IntN(9)))}
		items = append(items, it)
	}
	fresh, err := m.db.Claim(time.Unix(m.now, 0), r.Host, items, nil)
	if err != nil {
		return m.changed(err, nil)
	}
	for i, it := range items {
		u := URL{Hash: it.Hash, At: m.now, Data: it.Data}
		if want := !m.knows.has(r.Host, u.Hash, &r); fresh[i] != want {
			m.t.Fatalf("%s %x is fresh: %v, want %v", r.Host, it.Hash, fresh[i], want)
		}
		if fresh[i] {
			r.URLs = append(r.URLs, u)
		}
	}
	return m.changed(nil, func(k known) { k.merge(r) })
}

// has reports whether a URL is known, or is in a record.
func (k known) has(host string, h Hash, r *Record) bool {
	in := func(r *Record) bool {
		return r != nil && slices.ContainsFunc(r.URLs, func(u URL) bool { return u.Hash == h })
	}
	return in(r) || in(k[host])
}

func (m *model) done() bool {
	r := Record{Host: m.host()}
	var hashes []Hash
	for range 1 + m.dice.IntN(5) {
		hashes = append(hashes, m.hash())
		r.URLs = append(r.URLs, URL{Hash: hashes[len(hashes)-1], Done: true})
	}
	n, err := m.db.Done(r.Host, hashes)
	return m.changed(err, func(k known) {
		if want := k.merge(r); n != want {
			m.t.Fatalf("Done of %s is news of %d URLs, want %d", text(r), n, want)
		}
	})
}

func (m *model) record() Record {
	r := Record{Host: m.host()}
	if m.dice.IntN(3) == 0 {
		r.Target, r.Assigned = fmt.Sprint("n", m.dice.IntN(4)), m.now-int64(m.dice.IntN(100))
	}
	for range m.dice.IntN(6) {
		u := URL{Hash: m.hash(), Done: m.dice.IntN(3) == 0}
		if !u.Done {
			u.At, u.Data = m.now-int64(m.dice.IntN(100)), []byte(fmt.Sprint("merged", m.dice.IntN(9)))
		}
		r.URLs = append(r.URLs, u)
	}
	return r
}

func (m *model) merge() bool {
	r := m.record()
	n, err := m.db.Merge(time.Unix(m.now, 0), []Record{r})
	return m.changed(err, func(k known) {
		if want := k.merge(r); n != want {
			m.t.Fatalf("Merge of %s is news of %d URLs, want %d", text(r), n, want)
		}
	})
}

func (m *model) forget() bool {
	p := xor.Prefix(keyOf(m.host()), m.dice.IntN(7))
	host := ""
	switch m.dice.IntN(4) {
	case 0:
		p = xor.List(self, xor.Bits-6+m.dice.IntN(6))
	case 1:
		p = p.With(xor.Bits-1-p.Len()-m.dice.IntN(8), byte(m.dice.IntN(2)))
	case 2:
		host = m.host()
	}
	q := xor.Prefix(keyOf(m.host()), 1+m.dice.IntN(6)) // which p may have a part of
	gone := func(k known) {
		maps.DeleteFunc(k, func(name string, _ *Record) bool {
			return name == host || host == "" && (p.Contains(keyOf(name)) || q.Contains(keyOf(name)))
		})
	}
	m.states = append(m.states, m.knows.clone()) // the last before it
	gone(m.states[len(m.states)-1])
	var err error
	if host != "" {
		err = m.db.ForgetHosts(context.Background(), host)
	} else {
		err = m.db.Forget(context.Background(), p, q)
	}
	if before := m.knows.String(); err == nil {
		if gone(m.knows); m.knows.String() == before {
			return true // there was nothing to do
		}
	}
	return m.durable(err)
}

// changed notes a change, of which nobody knows whether it is durable.
func (m *model) changed(err error, change func(known)) bool {
	if errors.Is(err, ErrFull) {
		return m.durable(m.db.Checkpoint(context.Background()))
	}
	if change != nil && err == nil {
		change(m.knows)
		m.states = append(m.states, m.knows.clone())
	}
	return m.fine(err)
}

// durable notes that all changes are.
func (m *model) durable(err error) bool {
	if err == nil {
		m.states = []known{m.knows.clone()}
	}
	return m.fine(err)
}

// fine reports whether the process is still alive.
func (m *model) fine(err error) bool {
	if err != nil && !m.disk.Dead() {
		m.t.Fatal(err)
	}
	return err == nil
}

// reopen opens what a process, or a machine, that died has left.
func (m *model) reopen() {
	m.db.Close() // it is dead
	m.log.Close()
	if m.dice.IntN(2) == 0 {
		check(m.t, m.disk.PowerLoss(m.dice))
	}
	m.open()
	got := dump(m.t, m.db, 1000)
	i := slices.IndexFunc(m.states, func(k known) bool { return k.String() == got })
	if i < 0 {
		m.t.Fatalf("the history knows\n%swhich is none of %d states; the durable one is\n%s", got, len(m.states),
			m.states[0])
	}
	m.knows = m.states[i]
	m.states = []known{m.knows.clone()}
	m.knows.agrees(m.t, m.db)
}

// TestAgreesWithAModel does random things to a history with little memory. Its process is killed, or the power fails,
// at random bytes: then it knows all that was durable, and nothing that was not changed.
func TestAgreesWithAModel(t *testing.T) {
	for range 20 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := newModel(t, seed)
			for range 6 {
				m.disk.DieAfter(int64(m.dice.IntN(1 << (8 + m.dice.IntN(12)))))
				for n := 0; n < 1000 && m.life(); n++ {
				}
				m.reopen()
			}
			check(t, m.db.Close())
			check(t, m.log.Close())
		})
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

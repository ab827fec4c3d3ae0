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

	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
	"kumo/internal/base/xor"
	"kumo/internal/state/journal/file"
)

// keyOf maps hosts to a key space so small that some share a key.
const keyBits = 6 // bits, so some keys collide

func keyOf(host string) xor.ID { return xor.Of("host", host).Truncate(keyBits) }

// known is the expected content of a history: records by host, URLs in order.
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

// enter implements Insert in a simple way. It returns the previous states.
func (k known) enter(r Record) (before []State) {
	mine := k[r.Host]
	if mine == nil {
		mine = &Record{Host: r.Host}
		k[r.Host] = mine
	}
	for _, u := range r.URLs {
		byHash := func(a, b URL) int { return bytes.Compare(a.Hash[:], b.Hash[:]) }
		i, ok := slices.BinarySearchFunc(mine.URLs, u, byHash)
		switch {
		case !ok:
			mine.URLs = slices.Insert(mine.URLs, i, u)
			before = append(before, Unknown)
		default:
			old := mine.URLs[i]
			before = append(before, stateFor(old, u))
			if u.Visit > old.Visit || u.Visit == old.Visit && stage(u) > stage(old) {
				mine.URLs[i] = u
			}
		}
	}
	return before
}

// stateFor returns the state that Insert returns of a URL if u is inserted.
func stateFor(old, u URL) State {
	open := !old.Done && !old.Scheduled
	switch {
	case old.Visit > u.Visit, old.Visit == u.Visit && old.Done:
		return Done
	case open && old.Visit == u.Visit, open && (u.Done || u.Scheduled):
		return Dispatched
	}
	return Unknown
}

// stage orders the states of one visit.
func stage(u URL) int {
	switch {
	case u.Scheduled:
		return 1
	case u.Done:
		return 3
	}
	return 2
}

func (k known) String() string {
	var b strings.Builder
	for _, name := range slices.SortedFunc(maps.Keys(k), func(a, b string) int {
		x, y := keyOf(a), keyOf(b)
		return min(1, max(-1, 2*bytes.Compare(x[:], y[:])+strings.Compare(a, b)))
	}) {
		if r := k[name]; len(r.URLs) > 0 {
			fmt.Fprintln(&b, text(*r))
		}
	}
	return b.String()
}

func text(r Record) string {
	s := r.Host + ":"
	for _, u := range r.URLs {
		s += fmt.Sprintf(" %x", u.Hash[:3])
		if !u.Done {
			s += fmt.Sprintf("%q", u.Data)
		}
		if u.Visit > 0 {
			s += fmt.Sprintf(" visit %d stage %d", u.Visit, stage(u))
		}
	}
	return s
}

// dump returns the complete content of a history, read in pieces, in the format of known.String.
func dump(t testing.TB, d *DB, most int) string {
	t.Helper()
	all := dumpAll(t, d, most)
	if parts := dumpParts(t, d, most); parts != all {
		t.Errorf("by ranges of keys it knows\n%swant\n%s", parts, all)
	}
	return all
}

func dumpAll(t testing.TB, d *DB, most int) string {
	t.Helper()
	all := known{}
	for next, begun := Cursor(""), false; next != "" || !begun; begun = true {
		records, n, err := d.Records("", next, most)
		check(t, err)
		for _, r := range records {
			all.enter(r)
		}
		next = n
	}
	return all.String()
}

// dumpParts does so range by range: keys that begin with 00, 01, 10 and 11.
func dumpParts(t testing.TB, d *DB, most int) string {
	t.Helper()
	all := known{}
	for first := range 4 {
		prefix := xor.ID{byte(first << 6)}
		for next, begun := Cursor(""), false; next != "" || !begun; begun = true {
			records, n, err := d.RecordsWithin(prefix, 2, next, most)
			check(t, err)
			for _, r := range records {
				if d.cfg.Key(r.Host).Truncate(2) != prefix {
					t.Errorf("%s is not in the range %v", r.Host, prefix)
				}
				all.enter(r)
			}
			next = n
		}
	}
	return all.String()
}

// agrees compares a history's counts and its answers for single hosts with the expected content.
func (k known) agrees(t testing.TB, d *DB) {
	t.Helper()
	urls, hosts, scheduled := 0, 0, 0
	for name, r := range k {
		open := 0
		for _, u := range r.URLs {
			urls++
			if stage(u) == 2 {
				open++
			}
			if u.Scheduled {
				scheduled++
			}
		}
		if open > 0 {
			hosts++
		}
		if got := d.OpenURLs(name); got != open {
			t.Errorf("%d URLs of %s are open, want %d", got, name, open)
		}
		alone := known{}
		records, _, err := d.Records(name, "", 1<<20)
		check(t, err)
		for _, one := range records {
			alone.enter(one)
		}
		if got, want := alone.String(), (known{name: r}).String(); got != want {
			t.Errorf("of one host it knows\n%swant\n%s", got, want)
		}
	}
	check(t, d.Scheduled(func(name string, u URL) bool {
		scheduled--
		if is := slices.ContainsFunc(k[name].URLs, func(o URL) bool {
			return o.Hash == u.Hash && o.Visit == u.Visit && o.Scheduled && bytes.Equal(o.Data, u.Data)
		}); !is {
			t.Errorf("%s has a scheduled %+v", name, u)
		}
		return true
	}))
	if scheduled != 0 {
		t.Errorf("%d scheduled URLs are missing", scheduled)
	}
	if s := d.Stats(); s.URLs != int64(urls) || s.Hosts != hosts || len(d.OpenHosts()) != hosts {
		t.Errorf("%+v, want %d URLs, %d hosts", s, urls, hosts)
	}
}

// A model is a history, its expected content, and the contents that are possible after a crash.
type model struct {
	t    *testing.T
	dice *rand.Rand
	dir  string
	disk *vfstest.Faulty
	db   *DB
	log  *file.Journal
	now  int64

	revisits bool // URLs are visited again
	knows    known
	states   []known // after each change since the last durable one, which is the first
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{t: t, dice: rand.New(rand.NewPCG(seed, 0)), dir: t.TempDir(), now: 1_700_000_000, knows: known{}}
	m.states = []known{m.knows.clone()}
	m.revisits = seed%2 == 1
	m.open()
	return m
}

func (m *model) open() {
	m.disk = vfstest.NewFaulty(vfs.OS)
	j, err := file.Open(m.disk, filepath.Join(m.dir, "journal"), file.Config{Segment: 1 << (10 + m.dice.IntN(6))})
	check(m.t, err)
	db, err := Open(m.disk, filepath.Join(m.dir, "history"), j, Config{Key: keyOf,
		Memory: 1 << (17 + m.dice.IntN(3)), Ratio: 2 + m.dice.IntN(3)})
	check(m.t, err)
	m.db, m.log = db, j
}

func (m *model) host() string { return fmt.Sprintf("h%d.example", m.dice.IntN(20)) }

func (m *model) hash() Hash {
	return HashOf(fmt.Sprint(m.dice.IntN(1 + int(m.now-1_700_000_000)/8)))
}

// life makes random calls. It returns false when the process has died.
func (m *model) life() bool {
	m.now += int64(m.dice.IntN(3))
	switch k := m.dice.IntN(100); {
	case k < 75:
		return m.enter()
	case k < 88:
		return m.durable(m.db.Sync())
	case k < 90:
		return m.forget()
	case k < 94:
		return m.durable(m.db.Checkpoint(context.Background()))
	case k < 98:
		return m.fine(m.db.Maintain(context.Background()))
	}
	if got, want := dump(m.t, m.db, 1+m.dice.IntN(200)), m.knows.String(); got != want {
		m.t.Fatalf("the history knows\n%swant\n%s", got, want)
	}
	m.knows.agrees(m.t, m.db)
	return true
}

func (m *model) enter() bool {
	r := Record{Host: m.host()}
	for range 1 + m.dice.IntN(5) {
		u := URL{Hash: m.hash(), Done: m.dice.IntN(3) == 0}
		if m.revisits {
			u.Visit = uint64(max(m.dice.IntN(6)-2, 0))
			u.Scheduled = !u.Done && u.Visit > 0 && m.dice.IntN(2) == 0
		}
		if !u.Done {
			u.Data = []byte(fmt.Sprint("data", m.dice.IntN(9)))
		}
		r.URLs = append(r.URLs, u)
	}
	before, err := m.db.Insert(r.Host, r.URLs, nil)
	return m.changed(err, func(k known) {
		if want := k.enter(r); !slices.Equal(before, want) {
			m.t.Fatalf("of %s %v was known, want %v", text(r), before, want)
		}
	})
}

func (m *model) forget() bool {
	hosts := []string{m.host(), m.host(), m.host()}[:1+m.dice.IntN(3)]
	gone := func(k known) {
		for _, name := range hosts {
			delete(k, name)
		}
	}
	m.states = append(m.states, m.knows.clone()) // the state before it
	gone(m.states[len(m.states)-1])
	err := m.db.ForgetHosts(context.Background(), hosts...)
	if before := m.knows.String(); err == nil {
		if gone(m.knows); m.knows.String() == before {
			return true // nothing had to be done
		}
	}
	return m.durable(err)
}

// changed records a change that may or may not be durable.
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

// durable records that all changes are durable.
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

// reopen opens the state that a dead process or machine has left.
func (m *model) reopen() {
	m.db.Close() // the process is dead
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

// TestAgreesWithAModel makes random calls to a history with little memory. Its process is killed, or the power fails,
// at random bytes. Then the history contains all durable changes, and no others than those made.
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

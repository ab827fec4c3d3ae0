package seen

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/base/vfs"
	"kumo/internal/base/vfs/vfstest"
)

// TestDBAgreesWithAMap runs random operations on a database with little memory, and on maps. Its process is killed, or
// the power fails, at random bytes; then the journal is replayed from the disk's position.
func TestDBAgreesWithAMap(t *testing.T) {
	for range 10 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := newModel(t, seed)
			for range 4 {
				m.live()
				m.reopen()
			}
		})
	}
}

// waiting is an undecided offer: the URL's entry before it, and the best offer since.
type waiting struct {
	before  entry
	best    entry
	payload string
}

// A model is the expected content of a database, and the journal to rebuild it from.
type model struct {
	t       *testing.T
	dice    *rand.Rand
	dir     string
	disk    *vfstest.Faulty
	db      *DB
	depths  bool
	now     time.Time
	journal []any // URL, note or told

	known                map[string]entry
	meta                 map[string]Meta
	active, frozen, late map[string]waiting            // late: undecided on disk
	lates                map[uint64]map[string]waiting // by position: the undecided URLs before they were decided
	told                 map[string]News               // since late was empty
	passed               map[string]bool               // answered by an offer while an earlier one was undecided
}

// A told URL is a URL that a merge has decided.
type told URL

type note struct {
	url  string
	meta Meta
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{t: t, dice: rand.New(rand.NewPCG(seed, 0)), dir: t.TempDir(), now: time.Unix(1_700_000_000, 0),
		known: map[string]entry{}, meta: map[string]Meta{}, active: map[string]waiting{}, late: map[string]waiting{},
		lates: map[uint64]map[string]waiting{}, told: map[string]News{},
		passed: map[string]bool{}}
	m.depths = m.dice.IntN(3) > 0
	m.open()
	return m
}

func (m *model) open() {
	m.disk = vfstest.NewFaulty(vfs.OS)
	db, err := Open(m.disk, m.dir, Config{Memory: 1 << 16, Ratio: 2 + m.dice.IntN(3), Depths: m.depths,
		Share: 1 << m.dice.IntN(6),
		Now:   func() time.Time { return m.now }})
	m.check(err)
	m.db = db
}

func (m *model) live() {
	m.disk.DieAfter(int64(m.dice.IntN(1 << (8 + m.dice.IntN(14)))))
	for range 400 {
		switch k := m.dice.IntN(100); {
		case k < 70:
			m.offer()
		case k < 80:
			m.note()
		case k < 84:
			m.get(m.url())
		case k < 85:
			m.scan("https://h0.example/x")
		case k < 90:
			m.freeze()
		case k < 96:
			if m.frozen != nil && !m.merge(m.db.Merge) {
				return
			}
		case k < 97:
			if !m.merge(m.db.DecideAll) {
				return
			}
		default:
			if _, err := m.db.Compact(context.Background()); !m.fine(err) {
				return
			}
		}
	}
}

// url returns one of a growing set of URLs.
func (m *model) url() string {
	host, folder, page := m.dice.IntN(5), strings.Repeat("x", m.dice.IntN(3)), m.dice.IntN(1+len(m.journal)/4)
	return fmt.Sprintf("https://h%d.example/%s%d", host, folder, page)
}

func (m *model) offer() {
	urls := make([]URL, 1+m.dice.IntN(20))
	for i := range urls {
		urls[i] = URL{URL: m.url(), Depth: int32(m.dice.IntN(40)), State: Deferred + State(m.dice.IntN(2)),
			Payload: []byte(strings.Repeat("p", m.dice.IntN(5)))}
	}
	for i, news := range m.db.Offer(urls, nil) {
		m.offered(urls[i], news)
		m.journal = append(m.journal, urls[i])
	}
}

// offered compares the result of an offer with the expected one.
func (m *model) offered(u URL, got News) {
	m.t.Helper()
	old, offered := m.known[u.URL], entry{u.State, u.Depth}
	w, waits := m.active[u.URL]
	l, late := m.late[u.URL]
	switch want := m.judge(old, offered); {
	case got == Undecided && waits:
		if m.judge(w.best, offered) == Nothing {
			m.t.Fatalf("%v is Later, which is no better than what waits", u)
		}
		m.active[u.URL] = waiting{w.before, offered, string(u.Payload)}
	case got == Undecided:
		m.active[u.URL] = waiting{old, offered, string(u.Payload)}
	case late && got == m.judge(l.before, offered): // a rebuilt filter answers differently
		l.before = better(l.before, offered)
		m.late[u.URL], m.passed[u.URL] = l, true
	case got != want:
		m.t.Fatalf("%v is %v, want %v: known as %v", u, got, want, old)
	}
	m.know(u.URL, offered)
}

func (m *model) know(url string, e entry) { m.known[url] = better(m.known[url], e) }

// better merges two entries.
func better(a, b entry) entry {
	switch {
	case a.state < b.state:
		return b
	case a.state == b.state:
		a.depth = min(a.depth, b.depth)
	}
	return a
}

func (m *model) judge(old, e entry) News {
	news := old.judge(e.state, e.depth)
	if news == Nearer && !m.depths {
		return Nothing
	}
	return news
}

func (m *model) note() {
	n := note{m.url(), Meta{Fetched: m.time(), Due: m.time(), Status: m.dice.IntN(3) * 200, Changes: m.dice.IntN(2)}}
	if m.dice.IntN(2) == 0 {
		n.meta.ETag, n.meta.Modified = `"tag"`, m.time()
	}
	if m.dice.IntN(2) == 0 {
		n.meta.Digest, n.meta.Content = [20]byte{byte(1 + m.dice.IntN(255))}, uint64(m.dice.IntN(2))<<63
	}
	m.db.UpdateMeta(n.url, n.meta)
	m.noted(n)
	m.journal = append(m.journal, n)
}

func (m *model) noted(n note) {
	old := m.meta[n.url]
	m.meta[n.url] = *n.meta.join(&old)
}

// time returns a random time or the zero time.
func (m *model) time() time.Time {
	if m.dice.IntN(3) == 0 {
		return time.Time{}
	}
	return m.now.Add(time.Duration(m.dice.IntN(1e6)-5e5) * time.Second).UTC()
}

// fine reports whether the process is alive. Then there must be no error.
func (m *model) fine(err error) bool {
	if m.disk.Dead() {
		return false
	}
	m.check(err)
	return true
}

func (m *model) get(url string) {
	m.t.Helper()
	e, ok, err := m.db.Get(url)
	m.check(err)
	want, known := m.entry(url)
	if ok != known || ok && !m.same(e, want) {
		m.t.Fatalf("Get(%s) = %v, %v, want %v", url, e, ok, want)
	}
}

func (m *model) entry(url string) (Entry, bool) {
	e, offered := m.known[url]
	meta, noted := m.meta[url]
	return Entry{URL: url, State: e.state, Depth: e.depth, Meta: meta}, offered || noted && meta != Meta{}
}

func (m *model) same(got, want Entry) bool {
	got.First = time.Time{}
	if !m.depths {
		got.Depth = want.Depth
	}
	return got == want
}

func (m *model) scan(prefix string) {
	m.t.Helper()
	var urls []string
	for e, err := range m.db.Scan(prefix) {
		m.check(err)
		if want, ok := m.entry(e.URL); !m.same(e, want) || !ok && e.State != Unknown {
			m.t.Fatalf("Scan gives %v, want %v", e, want)
		}
		if e.State != Unknown {
			urls = append(urls, e.URL)
		}
	}
	want := slices.DeleteFunc(slices.Sorted(maps.Keys(m.known)), func(url string) bool {
		return !strings.HasPrefix(url,
			prefix)
	})
	if !slices.Equal(urls, want) {
		m.t.Fatalf("Scan gives %d URLs, want %d", len(urls), len(want))
	}
}

// reopen ends the process, and perhaps the machine, and restarts from the disk and the rest of the journal.
func (m *model) reopen() {
	m.check(m.db.Close())
	if m.dice.IntN(2) == 0 {
		m.check(m.disk.PowerLoss(m.dice))
	}
	m.open()
	pos := m.db.Position()
	rest := m.journal[pos:]
	m.known, m.meta = map[string]entry{}, map[string]Meta{}
	m.active, m.frozen, m.late, m.told = map[string]waiting{}, nil, map[string]waiting{}, map[string]News{}
	for url, w := range m.lates[pos] { // if it was decided, the rest of the journal has that
		if m.db.Waiting() > 0 || m.passed[url] || slices.ContainsFunc(rest, func(x any) bool {
			u, ok := x.(told)
			return ok &&
				u.URL == url
		}) {
			m.late[url] = w
		}
	}
	for _, x := range m.journal[:pos] {
		m.apply(x)
	}
	for _, x := range rest {
		switch x := x.(type) {
		case note:
			m.db.UpdateMeta(x.url, x.meta)
			m.noted(x)
		case URL:
			m.offered(x, m.db.Offer([]URL{x}, nil)[0])
		case told:
			m.knows(URL(x))
		}
	}
	m.look()
	m.settle()
}

// knows inserts a URL whose news was delivered before the process died.
func (m *model) knows(u URL) {
	m.db.InsertKnown([]URL{u})
	for _, all := range []map[string]waiting{m.late, m.active} {
		if w, ok := all[u.URL]; ok {
			w.before = better(w.before, entry{u.State, u.Depth})
			all[u.URL] = w
		}
	}
}

func (m *model) apply(x any) {
	switch x := x.(type) {
	case note:
		m.noted(x)
	case URL:
		m.know(x.URL, entry{x.State, x.Depth})
	}
}

// settle decides everything and compares all entries.
func (m *model) settle() {
	for range 3 {
		if m.freeze(); !m.merge(m.db.DecideAll) {
			m.t.Fatal("a healthy disk fails")
		}
	}
	m.look()
	if n := int64(len(m.known)); m.db.Len() != n || m.db.Position() != uint64(len(m.journal)) {
		m.t.Fatalf("Len = %d, Position = %d, want %d, %d", m.db.Len(), m.db.Position(), n, len(m.journal))
	}
}

// look compares all entries.
func (m *model) look() {
	m.t.Helper()
	m.scan("")
	for url := range m.known {
		if m.dice.IntN(10) == 0 {
			m.get(url)
		}
	}
}

func (m *model) check(err error) {
	m.t.Helper()
	if err != nil && !errors.Is(err, vfstest.ErrDead) {
		m.t.Fatal(err)
	}
}

// A replayed URL keeps the time when it was met, even if no manifest had the database's creation time yet.
func TestWhatIsReplayedKeepsItsTime(t *testing.T) {
	now := time.Unix(1_800_000_000, 0).UTC()
	db, err := Open(vfs.OS, t.TempDir(), Config{Memory: 1 << 20, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	want := map[string]time.Time{"http://a/": now.Add(-time.Hour), "http://b/": now.Add(-time.Minute), "http://c/": now}
	for _, url := range slices.Sorted(maps.Keys(want)) {
		if db.Replay(time.Time{}); want[url] != now {
			db.Replay(want[url])
		}
		db.InsertKnown([]URL{{URL: url, State: Known}})
	}
	for url, at := range want {
		if e, _, err := db.Get(url); err != nil || !e.First.Equal(at) {
			t.Errorf("%s was met at %v, not %v (%v)", url, e.First, at, err)
		}
	}
}

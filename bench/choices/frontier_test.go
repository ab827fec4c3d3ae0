package choices

import (
	"container/heap"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"kumo/internal/state/frontier"
)

var (
	queueHosts  = flag.Int("hosts", 20_000, "hosts of BenchmarkFrontier")
	queueURLs   = flag.Int("urls", 400_000, "URLs of BenchmarkFrontier")
	queueMemory = flag.Int64("memory", 8<<20, "bytes that a queue may take in BenchmarkFrontier")
)

// A queue holds URLs by host. next returns the best URL of a host whose time has come, and sets the host's next time.
type queue interface {
	push(host, url string, depth int) error
	next(now time.Time) (url string, err error)
	close() error
}

// BenchmarkFrontier fills queues beyond the memory budget. Then, as often as there are hosts, it takes a URL and pushes
// another; each host has its turn every second time. Nothing is made durable: a crawl has its journal and checkpoints.
//
//	go test -C bench/choices -run '^$' -bench Frontier -hosts 100000 -urls 3000000 -memory 33554432
func BenchmarkFrontier(b *testing.B) {
	for b.Loop() {
		for _, c := range []struct {
			name string
			open func(dir string, clock *time.Time) (queue, error)
		}{{"kumo", openFrontier}, {"Pebble", openPebble}} {
			dir, clock := b.TempDir(), time.Now()
			q, err := c.open(dir, &clock)
			check(b, err)
			web := &hostWeb{dice: rand.New(rand.NewPCG(1, 2))}
			begin := cpu()
			for i := range *queueURLs {
				check(b, web.push(q, i%*queueHosts))
			}
			filled := cpu() - begin
			size := diskUse(dir)
			begin = cpu()
			for range 2 {
				clock = clock.Add(time.Hour) // all hosts are due
				for range *queueHosts / 2 {
					_, err := q.next(clock)
					check(b, err)
					check(b, web.push(q, web.dice.IntN(*queueHosts)))
				}
			}
			turned := cpu() - begin
			check(b, q.close())
			urls, turns := float64(*queueURLs), float64(*queueHosts/2*2)
			b.Logf("%-7s filling %.2f µs CPU a URL, %.0f bytes on disk; taking one and pushing one %.2f µs CPU",
				c.name, filled.Seconds()*1e6/urls, float64(size)/urls, turned.Seconds()*1e6/turns)
		}
	}
	b.ReportMetric(0, "ns/op")
}

// A hostWeb generates URLs of about eighty bytes.
type hostWeb struct {
	dice *rand.Rand
	buf  []byte
}

func (w *hostWeb) push(q queue, host int) error {
	w.buf = append(w.buf[:0], "https://www.host-"...)
	w.buf = strconv.AppendInt(w.buf, int64(host), 10)
	w.buf = append(w.buf, ".example.com"...)
	end := len(w.buf)
	w.buf = append(w.buf, "/articles/2026/"...)
	w.buf = strconv.AppendUint(w.buf, w.dice.Uint64(), 36)
	w.buf = append(w.buf, "/a-title-in-words.html"...)
	url := string(w.buf)
	return q.push(url[len("https://"):end], url, w.dice.IntN(4))
}

func diskUse(dir string) (sum int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error { // files may disappear
		if err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil {
				sum += info.Size()
			}
		}
		return nil
	})
	return sum
}

// ours is kumo's frontier.
type ours struct{ f *frontier.Frontier }

func openFrontier(dir string, clock *time.Time) (queue, error) {
	f, _, err := frontier.Open(frontier.Config{Dir: dir, Memory: *queueMemory, Delay: time.Minute, Hosts: 1000,
		Now: func() time.Time { return *clock }})
	return ours{f}, err
}

func (o ours) push(host, url string, depth int) error {
	o.f.Push(host, frontier.Item{URL: url, Rank: int32(depth)})
	return nil
}

func (o ours) next(time.Time) (string, error) {
	v, err := o.f.Next(context.Background())
	if err != nil {
		return "", err
	}
	o.f.Done(v, frontier.Result{Outcome: frontier.Answered})
	return v.URL, nil
}

func (o ours) close() error { return o.f.Close() }

// A store keeps the queues in Pebble (host, depth, age: URL), and all hosts in memory, by their times. It has no
// classes, parking, checkpoints, or bound on the memory for hosts.
type store struct {
	db    *pebble.DB
	cache *pebble.Cache
	age   uint64
	key   []byte
	hosts map[string]*turn
	turns turns // of hosts with pending URLs
}

// A turn is a host's next time.
type turn struct {
	host    string
	at      time.Time
	waiting int
}

type turns []*turn

func (t turns) Len() int           { return len(t) }
func (t turns) Less(i, j int) bool { return t[i].at.Before(t[j].at) }
func (t turns) Swap(i, j int)      { t[i], t[j] = t[j], t[i] }
func (t *turns) Push(x any)        { *t = append(*t, x.(*turn)) }
func (t *turns) Pop() any {
	last := len(*t) - 1
	x := (*t)[last]
	*t = (*t)[:last]
	return x
}

func openPebble(dir string, _ *time.Time) (queue, error) {
	cache := pebble.NewCache(*queueMemory)
	opts := &pebble.Options{
		Cache:                       cache,
		DisableWAL:                  true,
		MemTableSize:                uint64(*queueMemory / 4),
		MemTableStopWritesThreshold: 2,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
		Logger:                      quiet{},
	}
	db, err := pebble.Open(dir, opts)
	return &store{db: db, cache: cache, hosts: map[string]*turn{}}, err
}

type quiet struct{}

func (quiet) Infof(string, ...any)      {}
func (quiet) Errorf(string, ...any)     {}
func (quiet) Fatalf(f string, a ...any) { panic(fmt.Sprintf(f, a...)) }

func (s *store) push(host, url string, depth int) error {
	t := s.hosts[host]
	if t == nil {
		t = &turn{host: strings.Clone(host)}
		s.hosts[t.host] = t
	}
	if t.waiting++; t.waiting == 1 {
		heap.Push(&s.turns, t)
	}
	s.age++
	s.key = append(append(s.key[:0], host...), 0, byte(depth))
	s.key = binary.BigEndian.AppendUint64(s.key, s.age)
	return s.db.Set(s.key, []byte(url), pebble.NoSync)
}

func (s *store) next(now time.Time) (string, error) {
	t := s.turns[0]
	from, to := append([]byte(t.host), 0), append([]byte(t.host), 1)
	it, err := s.db.NewIter(&pebble.IterOptions{LowerBound: from, UpperBound: to})
	if err != nil {
		return "", err
	}
	if !it.First() {
		return "", errors.Join(fmt.Errorf("nothing of %s is there", t.host), it.Close())
	}
	url := string(it.Value())
	err = errors.Join(s.db.Delete(it.Key(), pebble.NoSync), it.Close())
	t.at = now.Add(time.Minute)
	if t.waiting--; t.waiting == 0 {
		heap.Pop(&s.turns)
	} else {
		heap.Fix(&s.turns, 0)
	}
	return url, err
}

func (s *store) close() error {
	err := s.db.Close()
	s.cache.Unref()
	return err
}

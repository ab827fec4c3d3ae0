package crawl

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kumo/internal/base/item"
	"kumo/internal/base/page"
	"kumo/internal/base/vfs"
	"kumo/internal/base/weburl"
	"kumo/internal/cluster/member"
	"kumo/internal/cluster/strategy"
	"kumo/internal/content/robots"
	"kumo/internal/state/frontier"
	"kumo/internal/state/journal/file"
	"kumo/internal/state/recovery"
	"kumo/internal/state/seen"
	"kumo/internal/state/statefile"
	"kumo/internal/state/transfer"
)

// A haul is a handover of many hosts, with pending, visited and known URLs.
type haul struct {
	t           testing.TB
	hosts, each int
	disk        vfs.FS // of the frontier; nil: the machine's file system
	memory      int64  // of the frontier; default 64 MiB
}

func (h *haul) url(dice *rand.Rand, host, i int) string {
	return fmt.Sprintf("https://www.host-%06d.example.com/articles/2026/%08x/%d/a-title-in-words.html", host,
		dice.Uint32(), i)
}

// visitedOf is how many of ten URLs were visited; one is pending, and the others are only known (filtered, for
// example).
const visitedOf = 4

// fill adds the hosts to the sender.
func (h *haul) fill(ctx context.Context, e *Engine) {
	dice := rand.New(rand.NewPCG(1, 2))
	at := time.Now().Add(-time.Hour)
	for host := range h.hosts {
		entries, items := make([]seen.Entry, h.each), []item.Item(nil)
		key := ""
		for i := range entries {
			v := &entries[i]
			*v = seen.Entry{URL: h.url(dice, host, i), State: seen.Known, Depth: int32(i % 4), First: at}
			key = item.HostOf(v.URL)
			switch {
			case i%10 < visitedOf:
				v.Meta = seen.Meta{Fetched: at.Add(time.Duration(dice.IntN(3600)) * time.Second), Status: 200,
					ETag: fmt.Sprintf(`"%08x"`, dice.Uint32())}
				for k := range v.Digest {
					v.Digest[k] = byte(dice.Uint32())
				}
			case i%10 == visitedOf:
				items = append(items, item.Item{URL: v.URL, From: v.URL[:len("https://")+len(key)+10], Seed: "https://" + key + "/",
					Path: "LL", Depth: v.Depth, Kind: page.Anchor})
			}
		}
		e.known.db.Import(entries)
		e.frontier.Import(key, time.Duration(host%3)*time.Second, 0, items...)
		if host%100 == 0 {
			e.holds.awaitRoom(ctx)
		}
	}
	if err := e.Checkpoints.checkpoint(ctx); err != nil {
		h.t.Fatal(err)
	}
}

// open opens a node with its own disk, which commits and makes checkpoints until the test ends.
func (h *haul) open(router Router) *Engine {
	dir := h.t.TempDir()
	j, err := file.Open(vfs.OS, filepath.Join(dir, "journal"), file.Config{})
	db, dbErr := seen.Open(vfs.OS, filepath.Join(dir, "seen"), seen.Config{})
	front, note, frontErr := frontier.Open(frontier.Config{Dir: filepath.Join(dir, "frontier"), Disk: h.disk,
		Memory: cmp.Or(h.memory, 64<<20)})
	if err := errors.Join(err, dbErr, frontErr); err != nil {
		h.t.Fatal(err)
	}
	state, err := recovery.Recover(j, recovery.Views{Seen: db, Digests: seen.NewRecent(), Frontier: front,
		Abandoned: statefile.OpenAbandoned(vfs.OS, dir), Note: note})
	if err != nil {
		h.t.Fatal(err)
	}
	e := New(Config{Depth: -1}, Parts{Journal: j, Robots: robots.NewCache(robots.Config{}),
		Scope: weburl.NewScope(weburl.ScopeAny), Router: router}, state)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{e.ledger.Run, e.Checkpoints.keepCheckpointing} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				h.t.Error(err)
			}
		})
	}
	h.t.Cleanup(func() {
		stop()
		running.Wait()
		if err := errors.Join(j.Close(), db.Close(), front.Close()); err != nil {
			h.t.Error(err)
		}
	})
	return e
}

// nobodys is a Router without own hosts.
type nobodys struct{}

func (nobodys) Ours(string) bool { return false }
func (nobodys) May(string) bool  { return false }

// TestManyHostsAreHandedOver hands over a thousand hosts with a hundred URLs each. With KUMO_TEST_SCALE=1 it is 100,000
// hosts, and it prints the duration:
//
//	KUMO_TEST_SCALE=1 go test ./internal/engine/crawl -run ManyHosts -v
func TestManyHostsAreHandedOver(t *testing.T) {
	h := &haul{t: t, hosts: 1000, each: 100}
	if os.Getenv("KUMO_TEST_SCALE") != "" {
		h.hosts = 100_000
	}
	h.move()
}

func (h *haul) move() {
	t, ctx := h.t, h.t.Context()
	from, to := h.open(nobodys{}), h.open(nobodys{})
	began := time.Now()
	h.fill(ctx, from)
	t.Logf("filled in %.1f s", time.Since(began).Seconds())
	began = time.Now()
	if err := from.Drain(ctx, nil); err != nil {
		t.Fatal(err)
	}
	bytes, chunks := h.carry(ctx, from, to)
	took := time.Since(began)
	n := h.hosts * h.each
	t.Logf("%d URLs of %d hosts in %.1f s, %d chunks, %.1f bytes a URL; %s", n, h.hosts, took.Seconds(), chunks,
		float64(bytes)/float64(n), peak())
	began = time.Now()
	if err := from.Transfers().ForgetHosts(ctx, func(string, uint64) bool { return true }); err != nil {
		t.Fatal(err)
	}
	t.Logf("forgotten in %.1f s; %s", time.Since(began).Seconds(), peak())
	if c := from.frontier.Counts(); c.URLs != 0 {
		t.Errorf("the sender has %+v", c)
	}
	if c := to.frontier.Counts(); c.URLs != n/10 || c.Hosts != h.hosts {
		t.Errorf("the receiver has %+v", c)
	}
	if err := to.Checkpoints.checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	if known := to.known.db.Len(); known != int64(n) {
		t.Errorf("the receiver knows %d URLs", known)
	}
}

// carry sends chunks from one node to the other, a few of them at once.
func (h *haul) carry(ctx context.Context, from, to *Engine) (bytes, chunks int) {
	t := member.Transfer{From: "a~1", To: "b~1", Epoch: 1, Attempt: 1}
	x, err := from.Transfers().Export(func(string) strategy.Node { return t.To })
	if err != nil {
		h.t.Fatal(err)
	}
	defer func() { _ = x.Close() }()
	type chunk struct {
		seq  uint64
		last bool
		data []byte
	}
	way := make(chan chunk, 16)
	var receiver sync.WaitGroup
	receiver.Go(func() {
		for c := range way {
			if err := takeWhole(ctx, to, t, c.seq, c.last, c.data); err != nil {
				h.t.Error(err)
				return
			}
		}
	})
	for last := false; !last && !h.t.Failed(); chunks++ {
		owner, data, err := x.Next()
		if err != nil {
			h.t.Fatal(err)
		}
		if len(data) > transfer.ChunkBytes {
			h.t.Errorf("a chunk of %d bytes", len(data))
		}
		bytes += len(data)
		last = owner == ""
		way <- chunk{uint64(chunks), last, data}
	}
	close(way)
	receiver.Wait()
	return bytes, chunks
}

// peak returns the peak memory of the process, if the system provides it.
func peak() string {
	status, _ := os.ReadFile("/proc/self/status")
	if _, rest, ok := strings.Cut(string(status), "VmHWM:"); ok {
		kb, _ := strconv.Atoi(strings.Fields(rest)[0])
		return fmt.Sprintf("%d MB of memory at most", kb>>10)
	}
	return ""
}

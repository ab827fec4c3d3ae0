package frontier

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"kumo/internal/state/rank"
	"kumo/internal/state/rank/ids"
)

// The size of BenchmarkScale: by default a hundredth of what a node is built for.
var (
	scaleHosts  = flag.Int("hosts", 100_000, "hosts of BenchmarkScale")
	scaleURLs   = flag.Int("urls", 1_000_000, "URLs of BenchmarkScale")
	scaleRanked = flag.Bool("ranked", false, "with a Ranker, and six moves a fetch, in BenchmarkScale")
	scaleMemory = flag.Int64("memory", 8<<20, "the frontier's budget in BenchmarkScale, in bytes")
)

// A scaleRun is a frontier whose hosts become due one after the other, a thousand a second, after a delay.
type scaleRun struct {
	b     *testing.B
	f     *Frontier
	clock time.Time
	rng   *rand.Rand
	buf   []byte
}

// BenchmarkScale fills a frontier on disk, fetches at a thousand pages a second for five seconds, then as fast as it
// can for at most forty:
//
//	go test ./internal/state/frontier -run - -bench Scale -benchtime 1x -cpu 1 -hosts 10000000 -urls 100000000 -memory 536870912
//
// One URL in a hundred goes to one huge host.
func BenchmarkScale(b *testing.B) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(*scaleMemory * 19 / 10))
	for b.Loop() {
		r := &scaleRun{b: b, clock: time.Now(), rng: rand.New(rand.NewPCG(1, 2))}
		delay := time.Duration(*scaleHosts) * time.Millisecond
		cfg := Config{Dir: b.TempDir(), Memory: *scaleMemory, Delay: delay, Hosts: 1000,
			Now: func() time.Time { return r.clock }}
		if *scaleRanked {
			cfg.Ranker = hashRanker{}
		}
		f, _, err := Open(cfg)
		if err != nil {
			b.Fatal(err)
		}
		r.f = f
		r.fill()
		r.checkpoint() // so that the system has nothing left to write
		r.pace()
		r.race()
		r.report()
		if err := f.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// url returns a URL of about eighty bytes at a host.
func (r *scaleRun) url(host int) (key string, it Item) {
	r.buf = append(r.buf[:0], "https://www.host-"...)
	r.buf = strconv.AppendInt(r.buf, int64(host), 10)
	r.buf = append(r.buf, ".example.com"...)
	end := len(r.buf)
	r.buf = append(r.buf, "/articles/2026/"...)
	r.buf = strconv.AppendUint(r.buf, r.rng.Uint64(), 36)
	r.buf = append(r.buf, "/a-title-in-words.html"...)
	url := string(r.buf)
	rank := int32(r.rng.IntN(4))
	if *scaleRanked {
		rank = int32(hashRanker{}.place(hashRanker{}.KeyOf(url)))
	}
	return url[len("https://"):end], Item{URL: url, From: url[:end+len("/articles/")], Seed: url[:end+1], Path: "LL",
		Rank: rank}
}

// A hashRanker derives the place of a URL from its key.
type hashRanker struct{}

func (hashRanker) KeyOf(url string) ids.Key   { return (*fakeRanker)(nil).KeyOf(url) }
func (hashRanker) Generation() uint64         { return 0 }
func (hashRanker) place(k ids.Key) rank.Place { return 320 - rank.Place(k%40) }
func (r hashRanker) Places(all []ids.URL, to []rank.Place) ([]rank.Place, error) {
	for _, u := range all {
		to = append(to, r.place(u.Key))
	}
	return to, nil
}

// move makes as many moves as a page does.
func (r *scaleRun) move() {
	if !*scaleRanked {
		return
	}
	for range 6 {
		key := fmt.Sprintf("www.host-%d.example.com", r.rng.IntN(*scaleHosts))
		r.f.Move(key, []Move{{ids.Key(r.rng.Uint64() >> (64 - ids.KeyBits)), rank.Place(280 + r.rng.IntN(40))}})
	}
}

func (r *scaleRun) fill() {
	start := time.Now()
	for host := range *scaleHosts {
		r.clock = r.clock.Add(time.Millisecond)
		key, it := r.url(host)
		r.f.Restore(key, it)
		r.serve()
	}
	for i := *scaleHosts; i < *scaleURLs; i++ {
		r.push()
		r.f.WaitForRoom(r.b.Context())
	}
	r.b.ReportMetric(float64(*scaleURLs)/time.Since(start).Seconds(), "fill-urls/s")
	r.b.ReportMetric(float64(r.f.disk.segments.size)/float64(*scaleURLs), "disk-B/url")
	r.b.ReportMetric(float64(r.f.disk.cold.table.memory)/float64(*scaleHosts), "table-B/host")
}

// serve does the disk work of Next, which is not called yet.
func (r *scaleRun) serve() {
	r.f.mu.Lock()
	work, _, _ := r.f.worker.begin(r.clock)
	r.f.mu.Unlock()
	if !work {
		return
	}
	if err := r.f.worker.work(); err != nil {
		r.b.Fatal(err)
	}
}

func (r *scaleRun) push() {
	host := r.rng.IntN(*scaleHosts)
	if r.rng.IntN(100) == 0 {
		host = 0
	}
	r.f.Push(r.url(host))
}

// pace runs in real time: one host becomes due per millisecond.
func (r *scaleRun) pace() {
	before, start := r.clock, time.Now()
	r.f.mu.Lock()
	r.f.cfg.Now = func() time.Time { return before.Add(time.Since(start)) }
	r.f.mu.Unlock()
	var late []time.Duration
	for time.Since(start) < 5*time.Second {
		v := r.next()
		late = append(late, v.Started.Sub(v.nextBefore))
		for range 5 {
			r.push()
		}
		r.move()
		r.f.Done(v, Result{Outcome: Answered})
	}
	r.clock = before.Add(time.Since(start))
	r.f.mu.Lock()
	r.f.cfg.Now = func() time.Time { return r.clock }
	r.f.mu.Unlock()
	slices.Sort(late)
	r.b.ReportMetric(float64(len(late))/5, "paced-fetches/s")
	r.b.ReportMetric(late[len(late)*99/100].Seconds()*1000, "late-p99-ms")
	r.b.ReportMetric(late[len(late)-1].Seconds()*1000, "late-max-ms")
}

func (r *scaleRun) next() *Visit {
	v, err := r.f.Next(context.Background())
	if err != nil {
		r.b.Fatal(err)
	}
	return v
}

// race makes all hosts due at once. In the first round each has its URLs in the order of the pushes; a second round
// finds them together. A round ends after twenty seconds, and then there is no second round.
func (r *scaleRun) race() {
	for _, round := range []string{"first", "again"} {
		r.clock = r.clock.Add(time.Duration(*scaleHosts) * 2 * time.Millisecond)
		start, used, n, most := time.Now(), cpu(), 0, *scaleHosts*9/10 // some hosts have no URLs left
		for ; n < most && time.Since(start) < 20*time.Second; n++ {
			r.push()
			r.move()
			r.f.Done(r.next(), Result{Outcome: Answered})
		}
		r.b.ReportMetric(float64(n)/time.Since(start).Seconds(), round+"-push+next/s")
		r.b.ReportMetric(float64(n)/max(cpu()-used, 1e-3), round+"-push+next/cpu-s")
		if n < most {
			return
		}
	}
}

// cpu returns the processor time of the process in seconds, if the system supplies it.
func cpu() float64 {
	stat, _ := os.ReadFile("/proc/self/stat")
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return float64(user+system) / 100
}

func (r *scaleRun) checkpoint() {
	start := time.Now()
	c, err := r.f.Cut()
	cut := time.Since(start)
	if err == nil {
		err = c.Write(nil)
	}
	if err != nil {
		r.b.Fatal(err)
	}
	r.b.ReportMetric(cut.Seconds()*1000, "cut-ms")
	r.b.ReportMetric(time.Since(start).Seconds()*1000, "checkpoint-ms")
}

// report prints the maximum memory of the process, if the system supplies it.
func (r *scaleRun) report() {
	status, _ := os.ReadFile("/proc/self/status")
	if _, rest, ok := strings.Cut(string(status), "VmHWM:"); ok {
		kb, _ := strconv.Atoi(strings.Fields(rest)[0])
		r.b.ReportMetric(float64(kb)/1024, "peak-RSS-MB")
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r.b.ReportMetric(float64(m.HeapInuse)/(1<<20), "heap-MB")
}

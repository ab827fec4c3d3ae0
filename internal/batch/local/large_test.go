//go:build linux

package local

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"
	"golang.org/x/sync/errgroup"

	"kumo/internal/archive/place/file"
	"kumo/internal/base/vfs"
	"kumo/internal/batch"
	"kumo/internal/batch/collection"
)

// A largeDay is input for merge and optimize, generated from a seed: Documents of pages 0 to pages-1, and their
// OutLinks to pages 0 to 2*pages-1. One page in fifty was fetched twice.
type largeDay struct {
	seed  uint64
	pages int
	words []byte // source of bodies
	en    *collection.Collection
}

const (
	largeFiles    = 8
	linksAPage    = 40
	bytesAPage    = 17_000 // of both records, approximately
	largeReducers = 4
	largeDate     = "2026-11-21"
	mostPeak      = 512 << 20 // maximum memory of a process, independent of its input
)

func newLargeDay(seed uint64, pages int) *largeDay {
	d := &largeDay{seed: seed, pages: pages, en: collection.New()}
	d.en.Code, d.en.Directory = "en", "crawler_en"
	dice := rand.New(rand.NewPCG(seed, 0))
	var words [5000][]byte
	for i := range words {
		words[i] = make([]byte, 2+dice.IntN(9), 11)
		for j := range words[i] {
			words[i][j] = byte('a' + dice.IntN(26))
		}
		words[i] = append(words[i], ' ')
	}
	for len(d.words) < 8<<20 {
		d.words = append(d.words, words[int(float64(len(words))*dice.Float64()*dice.Float64())]...)
	}
	return d
}

// url returns the URL of a page. Consecutive pages are far apart in the order of URLs.
func (d *largeDay) url(page int) string {
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], d.seed)
	binary.LittleEndian.PutUint64(b[8:], uint64(page))
	h := xxhash.Sum64(b[:])
	return fmt.Sprintf("http://www.site%04d.example/%012x/page-%d.html", h%5000, h>>16, page)
}

// document returns the Document of a page's first or second visit.
func (d *largeDay) document(page, visit int) batch.Document {
	dice := rand.New(rand.NewPCG(d.seed, uint64(page)<<1|uint64(visit)))
	size := 2000 + dice.IntN(24_000)
	if dice.IntN(5000) == 0 {
		size = 2 << 20
	}
	at := dice.IntN(len(d.words) - size)
	raw := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: \"%x\"\r\nContent-Length: %d\r\n\r\n",
		dice.Uint64(), size)
	doc := batch.Document{Collection: d.en.Code, URL: d.url(page), Depth: depthOf(page), Status: 200, HeadLen: len(raw),
		Raw: append(raw, d.words[at:at+size]...), Time: time.Unix(1.7e9, 0).Add(time.Duration(visit) * time.Hour),
		Type: "text/html", Lang: "en", MetaFollow: true, MetaIndex: true}
	binary.LittleEndian.PutUint64(doc.Digest[:], dice.Uint64())
	return doc
}

func depthOf(page int) int { return page % 7 }

func isTwice(page int) bool { return page%50 == 0 }

// links returns the pages that a page links to.
func (d *largeDay) links(page int) (to [linksAPage]int) {
	dice := rand.New(rand.NewPCG(d.seed+1, uint64(page)))
	for i := range to {
		to[i] = int(float64(2*d.pages) * dice.Float64() * dice.Float64()) // some are popular
	}
	return to
}

// write writes an input file and returns the bytes of its records.
func (d *largeDay) write(ctx context.Context, p *file.Place, kind string, n int) (size int64, err error) {
	name := path.Join("input", kind, batch.PartName(n, batch.Sequence))
	var value []byte
	return size, batch.WriteFile(ctx, p, name, func(emit batch.Emit) error {
		put := func(key []byte) error {
			size += int64(len(key) + len(value))
			return emit(key, value)
		}
		for page := n * d.pages / largeFiles; page < (n+1)*d.pages/largeFiles; page++ {
			if kind == batch.JobOptimize {
				o := batch.OutLinks{Collection: d.en.Code, URL: d.url(page), Depth: depthOf(page), Time: time.Unix(1.7e9, 0)}
				for _, to := range d.links(page) {
					o.Links = append(o.Links, d.url(to))
				}
				value = o.Append(value[:0])
				if err := put(o.Key()); err != nil {
					return err
				}
				continue
			}
			for visit := 1; visit >= 0; visit-- {
				if visit == 0 || isTwice(page) {
					doc := d.document(page, visit)
					value = doc.Append(value[:0])
					if err := put(doc.Key()); err != nil {
						return err
					}
				}
			}
		}
		return nil
	})
}

// run runs a job in its own process, and logs its cost.
func (d *largeDay) run(t *testing.T, dir, job string, size int64) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestLargeInput$", "-test.timeout", "0")
	cmd.Env = append(os.Environ(), largeJob+"="+job, largeDir+"="+dir,
		fmt.Sprint("KUMO_TEST_SEED=", d.seed))
	begun := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %.4000s", job, err, out)
	}
	used := cmd.ProcessState
	peak := used.SysUsage().(*syscall.Rusage).Maxrss << 10
	t.Logf("%s of %d MB: %.1f s, %.1f s of CPU, %d MB at most", job, size/1e6, time.Since(begun).Seconds(),
		(used.UserTime() + used.SystemTime()).Seconds(), peak/1e6)
	if peak > mostPeak {
		t.Errorf("%s took %d MB of memory, more than %d", job, peak/1e6, int64(mostPeak)/1e6)
	}
}

// runLarge runs a job as kumo batch run does by default, but with less memory for small input.
func (d *largeDay) runLarge(ctx context.Context, p *file.Place, temp, job string) error {
	conf := &batch.Conf{Job: job, Date: largeDate, Collections: []*collection.Collection{d.en}, Reducers: largeReducers}
	j, err := batch.NewJob(conf, batch.Deps{Place: p})
	if err != nil {
		return err
	}
	inputs, err := batch.ListFiles(ctx, p, path.Join("input", job))
	if err != nil {
		return err
	}
	cfg := Config{Place: p, Temp: temp}
	if d.pages < 50_000 {
		cfg.Memory, cfg.Split = 1<<20, 1<<20
	}
	debug.SetMemoryLimit(cfg.MemoryLimit())
	_, err = New(cfg).Run(ctx, batch.Run{Job: j, Conf: conf, Inputs: inputs, Output: path.Join("output", job),
		Reducers: largeReducers})
	return err
}

// output iterates over a job's output of a kind, and checks its order and location.
func (d *largeDay) output(t *testing.T, p *file.Place, job, folder string, take func(batch.Record)) {
	t.Helper()
	for part := range largeReducers {
		name := path.Join("output", job, d.en.Directory, folder, batch.PartName(part, batch.Sequence))
		var last []byte
		for r, err := range batch.ReadFile(t.Context(), p, name) {
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Compare(last, r.Key) >= 0 || batch.HashPartition(r.Key, largeReducers) != part {
				t.Fatalf("%s: %s comes after %s", name, r.Key, last)
			}
			last = append(last[:0], r.Key...)
			take(r)
		}
	}
}

// A sum of records is independent of their order.
type sum struct{ n, hash uint64 }

func (s *sum) add(parts ...[]byte) {
	h := xxhash.New()
	for _, b := range parts {
		_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(b))))
		_, _ = h.Write(b)
	}
	s.n, s.hash = s.n+1, s.hash+h.Sum64()
}

// documents returns the expected output of merge: the first visit of each page.
func (d *largeDay) documents() (want sum) {
	for page := range d.pages {
		doc := d.document(page, 0)
		want.add([]byte(doc.URL), doc.Raw, doc.Digest[:])
	}
	return want
}

// next returns the expected output of optimize: linked pages that were not fetched, by the shortest path.
func (d *largeDay) next() (want sum) {
	depths := make([]byte, 2*d.pages)
	for page := range d.pages {
		for _, to := range d.links(page) {
			if depth := byte(depthOf(page) + 1); depths[to] == 0 || depth < depths[to] {
				depths[to] = depth
			}
		}
	}
	for page := d.pages; page < len(depths); page++ {
		if depths[page] > 0 {
			want.add([]byte(d.url(page)), depths[page:page+1])
		}
	}
	return want
}

const (
	largeJob = "KUMO_TEST_BATCH_JOB" // set in the process that runs a job: its name
	largeDir = "KUMO_TEST_BATCH_DIR" // set in the process that runs a job: the folder
)

// TestLargeInput runs merge and optimize over KUMO_TEST_BATCH_GB gigabytes of records in total, each in its own
// process, whose memory is measured. The default is small enough for every test run.
func TestLargeInput(t *testing.T) {
	if testing.Short() {
		t.Skip("sorts 40 MB in processes of its own")
	}
	gigabytes, _ := strconv.ParseFloat(os.Getenv("KUMO_TEST_BATCH_GB"), 64)
	seed, err := strconv.ParseUint(os.Getenv("KUMO_TEST_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("KUMO_TEST_SEED=%d", seed)
	d := newLargeDay(seed, int(cmp.Or(gigabytes, 0.04)*1e9/bytesAPage))
	dir := cmp.Or(os.Getenv(largeDir), t.TempDir())
	p, err := file.Open(filepath.Join(dir, "place"), vfs.OS)
	if err != nil {
		t.Fatal(err)
	}
	if job := os.Getenv(largeJob); job != "" {
		if err := d.runLarge(t.Context(), p, filepath.Join(dir, "temp"), job); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, job := range []string{batch.JobMerge, batch.JobOptimize} {
		t.Run(job, func(t *testing.T) { d.test(t, dir, p, job) })
	}
}

func (d *largeDay) test(t *testing.T, dir string, p *file.Place, job string) {
	var size atomic.Int64
	g, ctx := errgroup.WithContext(t.Context())
	g.SetLimit(2)
	for n := range largeFiles {
		g.Go(func() error {
			some, err := d.write(ctx, p, job, n)
			size.Add(some)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	d.run(t, dir, job, size.Load())
	if left, err := os.ReadDir(filepath.Join(dir, "temp")); err != nil || len(left) > 0 {
		t.Errorf("left in the temporary folder: %v %v", left, err)
	}
	d.judge(t, p, job)
	for _, done := range []string{"input", "output"} {
		if err := p.Remove(t.Context(), done); err != nil {
			t.Fatal(err)
		}
	}
}

// judge compares a job's output with the expected output.
func (d *largeDay) judge(t *testing.T, p *file.Place, job string) {
	t.Helper()
	var got, want sum
	if job == batch.JobOptimize {
		want = d.next()
		d.output(t, p, job, "in", func(r batch.Record) {
			in, err := batch.ReadInURL(r.Key, r.Value)
			if err != nil {
				t.Fatal(err)
			}
			got.add([]byte(in.URL), []byte{byte(in.Depth)})
		})
	} else {
		want = d.documents()
		known := 0
		d.output(t, p, job, "known", func(batch.Record) { known++ })
		if known != d.pages {
			t.Errorf("%d of %d pages are known", known, d.pages)
		}
		d.output(t, p, job, "doc", func(r batch.Record) {
			doc, err := batch.ReadDocument(r.Key, r.Value)
			if err != nil {
				t.Fatal(err)
			}
			got.add([]byte(doc.URL), doc.Raw, doc.Digest[:])
		})
	}
	t.Logf("%s left %d records", job, got.n)
	if got != want || want.n == 0 {
		t.Errorf("%s left %d records, sum %x; not %d, sum %x", job, got.n, got.hash, want.n, want.hash)
	}
}

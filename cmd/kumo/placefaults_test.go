package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kumo/internal/app/wire/places"
	"kumo/internal/archive/away"
	"kumo/internal/archive/place"
	"kumo/internal/archive/place/bucket/buckettest"
	"kumo/internal/base/vfs"
	"kumo/internal/content/hadoopconf/hadooptest"
	"kumo/internal/lab/synthweb"
	"kumo/internal/state/store/jsonl"
)

// TestPlaceFaults crawls a web into a bucket of a real server. The server is killed and restarted at random, a proxy
// answers 503 and cuts, slows and changes traffic, and kumo itself is killed; then the crawl finishes without faults.
// In the end no record may be missing or duplicated, and the bucket contains the files in its manifest and no more.
// KUMO_TEST_PLACE_ROUNDS (1) is the number of rounds, each with a seed; KUMO_TEST_SEED replays the choices of a run.
func TestPlaceFaults(t *testing.T) {
	seed := number("KUMO_TEST_SEED", rand.Uint64()>>1)
	t.Logf("KUMO_TEST_SEED=%d", seed)
	for n := range number("KUMO_TEST_PLACE_ROUNDS", 1) {
		p := newPlaceTrial(t, seed+n)
		p.server = buckettest.NewServer(t, t.TempDir())
		p.line = buckettest.Proxy(t, p.server.Endpoint, seed+n)
		p.url = buckettest.URL(p.line.Endpoint, "news")
		p.storm()
		p.calm()
		seen, all := p.line.Seen()
		t.Logf("ends %v; %d requests to the bucket, of which failed %v; WARC files stay: %v", p.ends, all, seen, p.keep)
		p.judge(filepath.Join(p.server.Dir, "news")) // as the files lie in the server's folder
	}
}

// TestPlaceOnHDFS kills a crawl into a real HDFS twice; then it finishes, and is checked in the same way.
func TestPlaceOnHDFS(t *testing.T) {
	folder := hadooptest.TempFolder(t)
	seed := number("KUMO_TEST_SEED", rand.Uint64()>>1)
	t.Logf("KUMO_TEST_SEED=%d", seed)
	p := newPlaceTrial(t, seed)
	p.url = folder + "/news"
	for range 2 {
		cmd, said := p.command()
		begin := p.web.Requests()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		over := make(chan struct{})
		var striking sync.WaitGroup
		striking.Go(func() {
			p.await(begin+70+p.dice.Int64N(60), over)
			_ = cmd.Process.Kill()
		})
		err := cmd.Wait()
		close(over)
		if striking.Wait(); err != nil && cmd.ProcessState.ExitCode() != -1 {
			t.Fatalf("%v\n%s", err, said)
		}
	}
	p.calm()
	there, err := places.Open(t.Context(), p.url)
	if err != nil {
		t.Fatal(err)
	}
	at := t.TempDir()
	err = place.Walk(t.Context(), there, "", func(name string, _ place.Info) error {
		data, err := place.ReadFile(t.Context(), there, name)
		full := filepath.Join(at, filepath.FromSlash(name))
		return errors.Join(err, os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, data, 0o600))
	})
	if err := errors.Join(err, there.(io.Closer).Close()); err != nil {
		t.Fatal(err)
	}
	p.judge(at)
}

// A placeTrial is one crawl into one storage location.
type placeTrial struct {
	*testing.T
	dice   *rand.Rand
	web    *synthweb.Server
	server *buckettest.Server // of a bucket
	line   *buckettest.Faults // proxy in front of it
	dir    string
	url    string
	keep   bool // WARC files stay in the folder
	ends   []string
}

func newPlaceTrial(t *testing.T, seed uint64) *placeTrial {
	p := &placeTrial{T: t, dice: rand.New(rand.NewPCG(seed, 1)), dir: filepath.Join(t.TempDir(), "crawl")}
	p.keep = p.dice.IntN(2) == 0
	cfg := synthweb.Clean(seed, 6, 300)
	cfg.MedianSize, cfg.Latency, cfg.Spread = 6<<10, 25*time.Millisecond, -1
	web, err := synthweb.Serve(t.Context(), synthweb.New(cfg), synthweb.ServeOptions{DNS: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { web.Close() })
	p.web = web
	return p
}

// command returns the command that a user would type, the same each time.
func (p *placeTrial) command() (*exec.Cmd, *bytes.Buffer) {
	cmd := exec.Command(kumoProgram(p.T), "crawl", "-q", "--work", p.dir, "-o", p.url, "--keep-local="+
		strconv.FormatBool(p.keep),
		"--delay", "15ms", "--ip-delay", "0", "--scope", "any", "--allow-private", "--contact", "test@example.org",
		"--dns-server", p.web.DNS(), "-c", "4", "--warc-size", "60KB", p.web.SeedURLs()[0])
	said := &bytes.Buffer{}
	cmd.Stderr = said
	return cmd, said
}

// storm ends processes and causes all other faults. Their times are numbers of requests to the web, so that they do not
// depend on the machine's speed. The storage location is opened without faults: if it is unreachable at the start, kumo
// fails and starts nothing.
func (p *placeTrial) storm() {
	for range 2 {
		cmd, said := p.command()
		begin := p.web.Requests()
		if err := cmd.Start(); err != nil {
			p.Fatal(err)
		}
		fails := begin + 1 + p.dice.Int64N(50)
		down := fails + p.dice.Int64N(60)
		back, killed := down+p.dice.Int64N(40), begin+80+p.dice.Int64N(80)
		over := make(chan struct{})
		var weather sync.WaitGroup
		weather.Go(func() {
			p.await(fails, over)
			p.line.Set(map[buckettest.Fault]float64{buckettest.Busy: 0.1, buckettest.Cut: 0.05, buckettest.Lost: 0.05,
				buckettest.Short: 0.05, buckettest.Changed: 0.05, buckettest.Slow: 0.3})
			p.await(down, over)
			p.server.Kill()
			p.await(back, over)
			p.server.Start()
		})
		weather.Go(func() {
			p.await(killed, over)
			_ = cmd.Process.Kill()
		})
		err := cmd.Wait()
		close(over)
		weather.Wait()
		p.line.Set(nil)
		code := cmd.ProcessState.ExitCode()
		if p.ends = append(p.ends, strconv.Itoa(code)); err != nil && code != -1 && code != exitBehind {
			p.Fatalf("exit code %d\n%s", code, said)
		}
	}
}

// await waits until the web has had a number of requests, or the process has ended.
func (p *placeTrial) await(requests int64, over <-chan struct{}) {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for p.web.Requests() < requests {
		select {
		case <-over:
			return
		case <-tick.C:
		}
	}
}

// calm lets the crawl finish.
func (p *placeTrial) calm() {
	cmd, said := p.command()
	if err := cmd.Run(); err != nil {
		p.Fatalf("%v\n%s", err, said)
	}
}

// judge checks the web's score, the crawl's lines, and the location's files, given as a folder.
func (p *placeTrial) judge(at string) {
	score := p.web.Score()
	if score.Missing != 0 {
		p.Errorf("%d pages are missing", score.Missing)
	}
	pages, err := os.ReadFile(filepath.Join(at, "pages.jsonl"))
	if err != nil {
		p.Fatal(err)
	}
	times := map[string]int{}
	for line := range bytes.Lines(pages) {
		l, err := jsonl.ParsePage(line)
		if err != nil {
			p.Fatal(err)
		}
		if times[l.URL]++; times[l.URL] == 2 {
			p.Errorf("%s is there twice", l.URL)
		}
	}
	if len(times) != score.Truth {
		p.Errorf("pages.jsonl has %d URLs of %d", len(times), score.Truth)
	}
	p.wantManifest(at)
	for _, where := range []string{p.dir, p.url} {
		if out, err := exec.Command(kumoProgram(p.T), "verify", "-q", where).CombinedOutput(); err != nil {
			p.Errorf("kumo verify %s: %v\n%s", where, err, out)
		}
	}
}

// wantManifest checks that a folder has the files that its manifest names, byte for byte, and no others.
func (p *placeTrial) wantManifest(at string) {
	log, torn, err := away.ReadLog(vfs.OS, p.dir)
	if err != nil || torn >= 0 {
		p.Fatalf("%v, torn at %d", err, torn)
	}
	manifest, err := os.ReadFile(filepath.Join(at, away.ManifestName))
	if err != nil || !bytes.Equal(manifest, log.Encode()) {
		p.Errorf("the manifest is not what the folder has noted: %v", err)
	}
	want := map[string]bool{away.ManifestName: true, away.MarkName: true}
	for _, e := range log.All() {
		want[e.Name] = true
		data, err := os.ReadFile(filepath.Join(at, filepath.FromSlash(e.Name)))
		if sum := sha256.Sum256(data); err != nil || hex.EncodeToString(sum[:]) != e.SHA256 || int64(len(data)) != e.Size {
			p.Errorf("%s has %d bytes, %x, and not %d, %s: %v", e.Name, len(data), sum, e.Size, e.SHA256, err)
		}
		_, err = os.Stat(filepath.Join(p.dir, filepath.FromSlash(e.Name)))
		if gone := errors.Is(err, fs.ErrNotExist); gone != (!p.keep && strings.Contains(e.Name, ".warc")) {
			p.Errorf("%s is in the folder: %v", e.Name, !gone)
		}
	}
	err = filepath.WalkDir(at, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(at, path)
		if err == nil && !d.IsDir() && !want[filepath.ToSlash(name)] {
			p.Errorf("the place has %s, too", name)
		}
		return err
	})
	if err != nil {
		p.Error(err)
	}
}

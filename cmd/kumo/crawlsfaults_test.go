package main

import (
	"bytes"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"kumo/internal/app/inspect"
	"kumo/internal/archive/away"
	"kumo/internal/archive/place/bucket/buckettest"
	"kumo/internal/cluster/bus/bustest"
	"kumo/internal/lab/synthweb"
	"kumo/internal/lab/testmain"
	"kumo/internal/state/store/jsonl"
)

const (
	faultDelay = 200 * time.Millisecond // between requests to a host, in both crawls
	faultPages = 600

	// Later answers are slow until the faults are over, so that the crawls do not end before: both need 1,200 pages.
	fastRequests = 300
	slowAnswer   = 5 * time.Second
)

func newFaultCluster(t *testing.T, seed uint64) *sharedCluster {
	cfg := synthweb.Clean(seed, 16, faultPages)
	cfg.MedianSize = 3 << 10
	server, err := synthweb.Serve(t.Context(), synthweb.New(cfg), synthweb.ServeOptions{DNS: true, Log: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	server.SetDelay(fastRequests, slowAnswer)
	return &sharedCluster{T: t, dir: t.TempDir(), server: server}
}

func (c *sharedCluster) begin(crawl string, args ...string) {
	c.Helper()
	c.change(crawl, "running", append([]string{"start", "--scope", "any", "--allow-private", "--ip-delay", "0", "--delay",
		faultDelay.String(), "--warc-size", "60KB", c.server.SeedURLs()[0]}, args...)...)
}

// change runs a command that gives a crawl a state. It repeats it while the servers elect a leader.
func (c *sharedCluster) change(crawl, state string, args ...string) {
	c.Helper()
	args = append(args, "--crawl", crawl)
	_, err := c.try(args...)
	for tries := 0; err != nil && c.status()[crawl].State != state; tries++ {
		if tries > 10 {
			c.Fatal(err)
		}
		_, err = c.try(args...)
	}
}

// judge checks that both crawls have all pages in their storage locations, given as folders, that verify finds no
// fault there, and that the crawls together were polite.
func (c *sharedCluster) judge(places string, crawls ...string) {
	c.Helper()
	log := c.server.Log()
	const slack = 5 * time.Millisecond // the server may notice the end of a request late
	if found := log.Overlaps(faultDelay - slack); len(found) > 0 {
		c.Errorf("%d requests came too soon, such as %+v", len(found), found[0])
	}
	score := c.server.Score()
	if score.Missing > 0 || score.Hasty > 0 || score.Forbidden > 0 || score.MostInFlight.Value != 1 {
		c.Errorf("the servers saw:\n%s", score)
	}
	for _, crawl := range crawls {
		at := filepath.Join(places, crawl)
		urls, lacking := c.recordsIn(at)
		for tries := 0; (len(urls) < score.Truth || len(lacking) > 0) && tries < 240; tries++ {
			time.Sleep(500 * time.Millisecond) // a node uploads the rest after the crawl's end
			urls, lacking = c.recordsIn(at)
		}
		if len(urls) != score.Truth || len(lacking) > 0 {
			c.Errorf("%s has records of %d URLs in its storage locations, of %d; lines without a record: %q", crawl, len(urls),
				score.Truth, lacking)
		}
		locations, err := os.ReadDir(at)
		if err != nil {
			c.Fatal(err)
		}
		for _, l := range locations {
			u := url.URL{Scheme: "file", Path: filepath.Join(at, l.Name())}
			if _, err := os.Stat(filepath.Join(u.Path, away.ManifestName)); err != nil {
				continue // nothing was uploaded
			}
			out, err := exec.Command(kumoProgram(c), "verify", "-q", "--moved", u.String()).CombinedOutput()
			for tries := 0; err != nil && tries < 60; tries++ {
				time.Sleep(500 * time.Millisecond)
				out, err = exec.Command(kumoProgram(c), "verify", "-q", "--moved", u.String()).CombinedOutput()
			}
			if err != nil {
				c.Errorf("kumo verify %s: %v\n%s", &u, err, out)
			}
		}
	}
}

// recordsIn returns the URLs in the page lists of the storage locations below a folder whose record is in a WARC file
// there, and the lines without such a file.
func (c *sharedCluster) recordsIn(dir string) (urls map[string]bool, lacking []string) {
	c.Helper()
	urls = map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		var data []byte
		switch {
		case err == nil && (d.IsDir() || !strings.Contains(path, "pages.jsonl")):
			return nil
		case err == nil:
			data, err = os.ReadFile(path)
		}
		if errors.Is(err, fs.ErrNotExist) { // parts of a list are removed when the list is uploaded
			lacking = append(lacking, path)
			return nil
		}
		for line := range bytes.Lines(data) {
			l, err := jsonl.ParsePage(line)
			if err != nil {
				return err
			}
			at, _, _ := strings.Cut(strings.TrimPrefix(path, dir+string(filepath.Separator)), string(filepath.Separator))
			if _, err := os.Stat(filepath.Join(dir, at, "warc", l.WARC)); err == nil {
				urls[l.URL] = true
			} else {
				lacking = append(lacking, at+" "+l.URL)
			}
		}
		return err
	})
	if err != nil {
		c.Fatal(err)
	}
	return urls, lacking
}

func (c *sharedCluster) members(all map[string]inspect.Cluster, crawl string) (n int) {
	one := all[crawl]
	for i := range one.Nodes {
		if one.Nodes[i].Is == inspect.NodeMember {
			n++
		}
	}
	return n
}

// pages returns the number of a crawl's pages. It waits until the crawl answers.
func (c *sharedCluster) pages(crawl string) (n int64) {
	c.Helper()
	c.eventually(crawl+" answers", func(all map[string]inspect.Cluster) bool {
		one, is := all[crawl]
		n = one.Totals.Pages
		return is
	})
	return n
}

// Three nodes with servers run two crawls into a folder. One of the nodes is killed, with its server, and comes back
// later. One of the crawls is stopped meanwhile, and resumed.
func TestSeveralCrawlsWithADeadServer(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	c := newFaultCluster(t, 41)
	servers := bustest.Addresses(t, 3)
	c.address = strings.Join(servers, ",")
	c.connect = []string{"--join", c.address}
	places := t.TempDir()
	node := func(i int) *exec.Cmd {
		return c.start("--name", string(rune('a'+i)), "--servers", "3", "--listen", servers[i], "--join", c.address,
			"--dns-server", c.server.DNS(), "--work", "node-"+string(rune('a'+i)), "-o", "file://"+filepath.ToSlash(places),
			"--max-rate", "6")
	}
	node(0)
	node(1)
	victim := node(2)
	c.begin("news", "--share", "3")
	c.begin("docs", "--strategy", "balance")
	c.eventually("both have three nodes, and pages", func(all map[string]inspect.Cluster) bool {
		return c.members(all, "news") == 3 && c.members(all, "docs") == 3 && all["news"].Totals.Pages > 20 &&
			all["docs"].Totals.Pages > 5
	})
	victim.Process.Kill()
	victim.Wait()
	news, docs := c.pages("news"), c.pages("docs")
	// The shares are not compared: a crawl uses less than its share while few of its URLs are pending.
	c.eventually("both go on with two nodes", func(all map[string]inspect.Cluster) bool {
		return c.members(all, "news") == 2 && c.members(all, "docs") == 2 && all["news"].Totals.Pages > news+30 &&
			all["docs"].Totals.Pages > docs+30
	})
	c.change("docs", "stopping", "stop")
	node(2)
	c.eventually("docs has stopped, and news has three nodes", func(all map[string]inspect.Cluster) bool {
		return all["docs"].State == "stopping" && c.members(all, "news") == 3
	})
	c.change("docs", "running", "start")
	c.eventually("docs has three nodes", func(all map[string]inspect.Cluster) bool { return c.members(all, "docs") == 3 })
	c.server.SetDelay(0, 0)
	c.eventually("both are done", func(all map[string]inspect.Cluster) bool {
		return all["news"].State == "done" && all["docs"].State == "done"
	})
	c.judge(places, "news", "docs")
}

// Two nodes run two crawls into a bucket, with an external NATS server. The server is killed and comes back, and so is
// a node. One of the crawls begins later.
func TestSeveralCrawlsWithExternalNATS(t *testing.T) {
	testmain.Slow(t)
	c := newFaultCluster(t, 42)
	buckettest.Credentials(t)
	bucket := buckettest.NewServer(t, t.TempDir())
	at := bustest.Addresses(t, 1)[0]
	program, err := exec.LookPath(natsProgram)
	if err != nil {
		t.Fatal(err)
	}
	startNATS := func() *exec.Cmd {
		cmd := exec.Command(program, at, filepath.Join(c.dir, "nats"))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		return cmd
	}
	nats := startNATS()
	c.connect = []string{"--nats", "nats://" + at}
	node := func(name string) *exec.Cmd {
		return c.start("--name", name, "--nats", "nats://"+at, "--dns-server", c.server.DNS(), "--work", "node-"+name, "-o",
			buckettest.URL(bucket.Endpoint, "x"), "--max-rate", "15")
	}
	node("a")
	victim := node("b")
	c.begin("news")
	c.eventually("news has two nodes, and pages", func(all map[string]inspect.Cluster) bool {
		return c.members(all, "news") == 2 && all["news"].Totals.Pages > 20
	})
	c.begin("docs", "--strategy", "hub")
	c.eventually("docs has two nodes, and pages", func(all map[string]inspect.Cluster) bool {
		return c.members(all, "docs") == 2 && all["docs"].Totals.Pages > 10
	})
	nats.Process.Kill()
	nats.Wait()
	time.Sleep(25 * time.Second) // longer than any lease
	startNATS()
	docs := c.pages("docs")
	c.eventually("docs goes on", func(all map[string]inspect.Cluster) bool {
		return all["docs"].Totals.Pages > docs+10
	})
	victim.Process.Kill()
	victim.Wait()
	c.eventually("docs goes on with one node", func(all map[string]inspect.Cluster) bool {
		return c.members(all, "docs") == 1 && c.members(all, "news") == 1
	})
	node("b")
	c.eventually("both have two nodes", func(all map[string]inspect.Cluster) bool {
		return c.members(all, "docs") == 2 && c.members(all, "news") == 2
	})
	c.server.SetDelay(0, 0)
	c.eventually("both are done", func(all map[string]inspect.Cluster) bool {
		return all["news"].State == "done" && all["docs"].State == "done"
	})
	c.judge(filepath.Join(bucket.Dir, "x"), "news", "docs")
}

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"

	"kumo/internal/state/store/jsonl"
	"kumo/internal/state/store/warc"
)

const (
	rankTop     = 500
	rankFewDocs = 10_000 // pages; with fewer, orders are not compared
	rankRate    = "500"  // pages per second of crawls that must find important pages: leaves time for ranking
)

// TestRankOfDocumentation crawls sites of documentation with the real engine, all pages by depth, and then a tenth of
// them in each order. The links recorded by the first crawl define which pages are important. Sites are the folders in
// KUMO_TEST_RANK_DOCS; without it a few are made up. KUMO_TEST_RANK_PAGES is the minimum number of pages.
// KUMO_TEST_RANK_OUT is a folder for the graph and the output of kumo sim rank.
func TestRankOfDocumentation(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: it makes seven crawls")
	}
	d := &docSites{T: t, folder: os.Getenv("KUMO_TEST_RANK_DOCS"), out: os.Getenv("KUMO_TEST_RANK_OUT")}
	if d.folder == "" {
		d.folder = madeUpDocs(t)
	}
	if d.out == "" {
		d.out = t.TempDir()
	}
	d.serve()
	all := filepath.Join(t.TempDir(), "all")
	d.crawl(all, "--order", "depth")
	g := d.graph(all)
	pages, links := g.write(t, filepath.Join(d.out, "links.txt.gz"))
	t.Logf("%d sites, %d pages fetched, %d links between them", len(d.seeds), pages, links)
	if least := int(number("KUMO_TEST_RANK_PAGES", 0)); pages < least {
		t.Errorf("%d pages are to be there", least)
	}
	top := min(rankTop, pages/20)
	t.Logf("kumo sim rank\n%s", d.kumo("sim", "rank", "--graph", filepath.Join(d.out, "links.txt.gz"), "--top",
		fmt.Sprint(top), "--out", filepath.Join(d.out, "orders")))
	important := g.top(top)
	found := map[string]int{}
	orders := []string{"pagerank", "opic", "indegree", "depth", "breadth", "random"}
	for _, order := range orders {
		dir := filepath.Join(t.TempDir(), order)
		d.crawl(dir, "--order", order, "--limit", fmt.Sprint(pages/10), "--max-rate", rankRate)
		for _, p := range d.pages(dir) {
			if important[p.URL] {
				found[order]++
			}
		}
		t.Logf("%-10s has %3d of the top %d after %d pages", order, found[order], top, pages/10)
	}
	if most := found["pagerank"]; most <= found["random"] || pages >= rankFewDocs && most <= found["depth"] {
		t.Errorf("of the top %d: %v", top, found)
	}
}

// docSites are sites of documentation that are served.
type docSites struct {
	*testing.T
	folder string
	out    string
	seeds  []string // a front page each
	port   string
}

// A docSite is one of them.
type docSite struct {
	folder string
	front  []byte // its generated front page: it links to all index pages that have none above them
}

// serve serves each folder as a host of its own.
func (d *docSites) serve() {
	hosts := map[string]docSite{}
	sites, err := os.ReadDir(d.folder)
	if err != nil {
		d.Fatal(err)
	}
	for _, site := range sites {
		root := os.DirFS(filepath.Join(d.folder, site.Name()))
		var front bytes.Buffer
		err := fs.WalkDir(root, ".", func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.IsDir() {
				return err
			}
			if _, err := fs.Stat(root, path+"/index.html"); err != nil {
				return nil //nolint:nilerr // it is further below
			}
			fmt.Fprintf(&front, "<a href='/%s/index.html'>%s</a>\n", path, path)
			return fs.SkipDir
		})
		if err != nil {
			d.Fatal(err)
		}
		if front.Len() > 0 {
			host := strings.ReplaceAll(site.Name(), "+", "p") + ".test"
			hosts[host] = docSite{filepath.Join(d.folder, site.Name()), front.Bytes()}
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := strings.Cut(r.Host, ":")
		site, known := hosts[host]
		path := filepath.Join(site.folder, filepath.FromSlash(r.URL.Path))
		switch file, err := os.Stat(path); {
		case known && r.URL.Path == "/":
			w.Header().Set("Content-Type", "text/html")
			w.Write(site.front)
		case known && err == nil && file.Mode().IsRegular():
			body, err := os.ReadFile(path)
			if err != nil {
				d.Error(err)
			}
			http.ServeContent(w, r, path, file.ModTime(), bytes.NewReader(body))
		default:
			http.NotFound(w, r)
		}
	}))
	d.Cleanup(server.Close)
	_, d.port, _ = strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	for host := range hosts {
		d.seeds = append(d.seeds, "http://"+host+":"+d.port+"/")
	}
	slices.Sort(d.seeds)
	if len(d.seeds) == 0 {
		d.Fatalf("there is no index.html in %s", d.folder)
	}
}

// kumo runs the command, which may end because of its limit, and returns its output.
func (d *docSites) kumo(args ...string) string {
	d.Helper()
	cmd := exec.CommandContext(d.Context(), kumoProgram(d.T), args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if limited := errors.As(err, &exit) && exit.ExitCode() == 4; err != nil && !limited {
		d.Fatalf("kumo %q: %v\n%s", args, err, stderr.Bytes())
	}
	return string(out)
}

func (d *docSites) crawl(dir string, flags ...string) {
	d.Helper()
	args := append([]string{"crawl", "-q", "-o", dir, "--allow-private", "--resolve", "*:*:127.0.0.1", "--delay", "0",
		"--ip-delay", "0", "-c", "16"}, flags...)
	d.kumo(append(args, d.seeds...)...)
}

// pages returns the lines of fetched pages and redirects.
func (d *docSites) pages(dir string) (all []jsonl.PageLine) {
	d.Helper()
	f, err := os.Open(filepath.Join(dir, "pages.jsonl"))
	if err != nil {
		d.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewReader(f); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			d.Fatal(err)
		}
		p, err := jsonl.ParsePage(line)
		if err != nil {
			d.Fatalf("%s: %v", line, err)
		}
		if p.Status >= 200 && p.Status < 400 {
			all = append(all, p)
		}
	}
}

// graph returns the links from page to page in a crawl's records.
func (d *docSites) graph(dir string) *docGraph {
	d.Helper()
	g := &docGraph{number: map[string]int{}}
	for _, p := range d.pages(dir) {
		if _, twice := g.number[p.URL]; !twice {
			g.number[p.URL] = len(g.urls)
			g.urls = append(g.urls, p.URL)
		}
	}
	g.links = make([][]int, len(g.urls))
	files, err := filepath.Glob(filepath.Join(dir, "warc", "*.warc.gz"))
	if err != nil || len(files) == 0 {
		d.Fatalf("no WARC in %s: %v", dir, err)
	}
	for _, name := range files {
		if err := g.read(name); err != nil {
			d.Fatalf("%s: %v", name, err)
		}
	}
	for i, to := range g.links {
		slices.Sort(to)
		g.links[i] = slices.Compact(to)
	}
	return g
}

// A docGraph is the links between pages that were fetched.
type docGraph struct {
	urls   []string
	number map[string]int
	links  [][]int // of each page, ascending
}

func (g *docGraph) read(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	in, err := warc.NewReader(f, info.Size(), name)
	if err != nil {
		return err
	}
	for {
		rec, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		from, known := g.number[rec.Fields["WARC-Target-URI"]]
		if !known || rec.Fields["WARC-Type"] != "metadata" {
			continue
		}
		for line := range strings.Lines(string(rec.Block)) {
			link := strings.Fields(strings.TrimPrefix(line, "outlink: "))
			if !strings.HasPrefix(line, "outlink: ") || len(link) != 3 || link[1] == "E" {
				continue
			}
			url, _, _ := strings.Cut(link[0], "#")
			if to, known := g.number[url]; known {
				g.links[from] = append(g.links[from], to)
			}
		}
	}
}

// write writes the graph in the format of kumo sim rank.
func (g *docGraph) write(t *testing.T, name string) (pages, links int) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	z := gzip.NewWriter(f)
	for i, to := range g.links {
		if len(to) == 0 {
			continue
		}
		links += len(to)
		io.WriteString(z, g.urls[i])
		for _, k := range to {
			io.WriteString(z, " "+g.urls[k])
		}
		io.WriteString(z, "\n")
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return len(g.urls), links
}

// top returns the pages with the highest PageRank, by its formula with plain sums.
func (g *docGraph) top(n int) map[string]bool {
	const jump, passes = 0.15, 100
	ranks := make([]float64, len(g.urls))
	for range passes {
		next := make([]float64, len(ranks))
		for i, to := range g.links {
			for _, k := range to {
				next[k] += (1 - jump) * (jump + ranks[i]) / float64(len(to))
			}
		}
		ranks = next
	}
	order := make([]int, len(ranks))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ranks[b], ranks[a]) })
	top := map[string]bool{}
	for _, i := range order[:n] {
		top[g.urls[i]] = true
	}
	return top
}

// madeUpDocs are three sites of 400 pages: each links to the one behind it, to ten others, and to four of a few that
// all link to.
func madeUpDocs(t *testing.T) string {
	const pages, popular = 400, 20
	dir := t.TempDir()
	for _, site := range []string{"one", "two", "three"} {
		dice := rand.New(rand.NewPCG(uint64(len(site)), 1))
		names := dice.Perm(pages)
		root := filepath.Join(dir, site, "html")
		if err := os.MkdirAll(root, 0o755); err != nil {
			t.Fatal(err)
		}
		for i := range pages {
			var b strings.Builder
			to := []int{(i + 1) % pages}
			for len(to) < 11 {
				to = append(to, dice.IntN(pages))
			}
			for len(to) < 15 {
				to = append(to, names[dice.IntN(popular)])
			}
			for _, k := range to {
				fmt.Fprintf(&b, "<a href=%d.html>x</a>", k)
			}
			name := fmt.Sprintf("%d.html", i)
			if i == 0 {
				name = "index.html"
				b.WriteString("<a href=0.html>x</a>")
			}
			if err := os.WriteFile(filepath.Join(root, name), []byte(b.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

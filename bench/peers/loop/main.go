// Loop is a minimal crawler: workers that take URLs from a list, net/http, a tokenizer for links, a URL set in memory.
// It has no politeness, robots.txt, limits or saved state. It shows the cost of fetching and of extracting links with
// Go's standard HTTP client.
//
// Do not change it: ../baseline.json records kumo's cost of a page relative to this program's. After a change, also of
// a dependency, renew the baseline.
//
//	loop -workers 64 [-warc FILE] URL
package main

import (
	"bytes"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/gzip"
	"golang.org/x/net/html"
)

func main() {
	workers := flag.Int("workers", 64, "number of concurrent fetches")
	path := flag.String("warc", "", "write a WARC to this file")
	flag.Parse()
	if err := run(flag.Arg(0), *workers, *path); err != nil {
		fmt.Fprintln(os.Stderr, "loop:", err)
		os.Exit(1)
	}
}

func run(seed string, workers int, path string) (err error) {
	c := &crawler{client: newClient(workers), list: newList()}
	if path != "" {
		if c.warc, err = createWARC(path); err != nil {
			return err
		}
		defer func() {
			if e := c.warc.close(); err == nil {
				err = e
			}
		}()
	}
	c.list.add(seed)
	var running sync.WaitGroup
	for range workers {
		running.Go(c.work)
	}
	running.Wait()
	return nil
}

func newClient(workers int) *http.Client {
	return &http.Client{
		Timeout: time.Minute,
		Transport: &http.Transport{
			TLSClientConfig:     &tls.Config{InsecureSkipVerify: true},
			MaxIdleConns:        4 * workers,
			MaxIdleConnsPerHost: 4,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// A list has the pending URLs, and the set of all known URLs.
type list struct {
	mu      sync.Mutex // guards the fields below
	more    sync.Cond
	waiting []string
	seen    map[string]struct{}
	busy    int // workers that may still add URLs
}

func newList() *list {
	l := &list{seen: make(map[string]struct{})}
	l.more.L = &l.mu
	return l
}

func (l *list) add(urls ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, u := range urls {
		if _, had := l.seen[u]; !had {
			l.seen[u] = struct{}{}
			l.waiting = append(l.waiting, u)
			l.more.Signal()
		}
	}
}

// next returns the next URL, waiting for one if necessary; false if the crawl is over. Call done after each URL.
func (l *list) next() (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.waiting) == 0 {
		if l.busy == 0 {
			return "", false
		}
		l.more.Wait()
	}
	u := l.waiting[0]
	l.waiting = l.waiting[1:]
	l.busy++
	return u, true
}

func (l *list) done() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy--; l.busy == 0 && len(l.waiting) == 0 {
		l.more.Broadcast()
	}
}

type crawler struct {
	client *http.Client
	list   *list
	warc   *warc // nil without
}

func (c *crawler) work() {
	for {
		u, ok := c.list.next()
		if !ok {
			return
		}
		if err := c.visit(u); err != nil {
			fmt.Fprintln(os.Stderr, "loop:", err)
		}
		c.list.done()
	}
}

// visit fetches a URL, records the answer as received, and adds its links.
func (c *crawler) visit(rawURL string) error {
	req, err := http.NewRequest("GET", rawURL, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil {
		return err
	}
	if c.warc != nil {
		if err := c.warc.write(req, resp, body); err != nil {
			return err
		}
	}
	if to := resp.Header.Get("Location"); to != "" {
		c.list.add(resolve(nil, req.URL, to)...)
	}
	if resp.StatusCode == http.StatusOK && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/html") {
		return c.read(req.URL, body, resp.Header.Get("Content-Encoding") == "gzip")
	}
	return nil
}

var readers sync.Pool // of *gzip.Reader

func (c *crawler) read(base *url.URL, body []byte, packed bool) error {
	var in io.Reader = bytes.NewReader(body)
	if packed {
		z, ok := readers.Get().(*gzip.Reader)
		if !ok {
			z = new(gzip.Reader)
		}
		defer readers.Put(z)
		if err := z.Reset(in); err != nil {
			return err
		}
		in = z
	}
	c.list.add(links(base, in)...)
	return nil
}

// links returns the links of a page.
func links(base *url.URL, page io.Reader) (found []string) {
	t := html.NewTokenizer(page)
	for {
		switch t.Next() {
		case html.ErrorToken:
			return found
		case html.StartTagToken:
			name, more := t.TagName()
			for anchor := string(name) == "a"; anchor && more; {
				var key, value []byte
				if key, value, more = t.TagAttr(); string(key) == "href" {
					found = resolve(found, base, string(value))
				}
			}
		}
	}
}

// resolve appends the URL of a reference if it is http or https.
func resolve(dst []string, base *url.URL, ref string) []string {
	u, err := base.Parse(ref)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return dst
	}
	u.Fragment = ""
	return append(dst, u.String())
}

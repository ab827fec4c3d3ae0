package kumo_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"kumo"
)

// sitePages are three pages that link to each other, and one without links.
var sitePages = map[string]string{
	"/":     `<title>Home</title><a href="/a">a</a> <a href="/b">b</a>`,
	"/a":    `<title>A</title><a href="/b">b</a>`,
	"/b":    `<title>B</title><a href="/missing">broken</a>`,
	"/lone": `<title>Nobody links here</title>`,
}

// site serves sitePages on loopback.
func site() *httptest.Server { return serving(sitePages) }

func serving(pages map[string]string) *httptest.Server { return httptest.NewServer(showing(pages)) }

func showing(pages map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if strings.HasPrefix(body, "{") {
			w.Header().Set("Content-Type", "application/json")
		}
		fmt.Fprint(w, body)
	}
}

func Example() {
	s := site()
	defer s.Close()
	c := kumo.New(kumo.Delay(0))
	c.OnPage(func(p *kumo.Page) { fmt.Println(p.Status, p.Title, len(p.Links)) })
	if err := c.Run(context.Background(), s.URL); err != nil {
		log.Fatal(err)
	}
	// Unordered output:
	// 200 Home 2
	// 200 A 1
	// 200 B 1
	// 404  0
}

func ExampleCrawler_Pages() {
	s := site()
	defer s.Close()
	c := kumo.New(kumo.Delay(0))
	for p, err := range c.Pages(context.Background(), s.URL) {
		var failed *kumo.Error
		if errors.As(err, &failed) {
			continue // a URL that was not answered
		}
		if err != nil {
			log.Fatal(err)
		}
		if fmt.Println(p.Title); p.Title == "B" {
			break // stops the crawl
		}
	}
	// Output:
	// Home
	// A
	// B
}

func ExampleCrawler_Stop() {
	s := site()
	defer s.Close()
	c := kumo.New(kumo.Delay(0))
	var pages atomic.Int32
	c.OnPage(func(p *kumo.Page) {
		pages.Add(1)
		c.Stop()
	})
	err := c.Run(context.Background(), s.URL)
	fmt.Println(pages.Load(), err)
	// Output: 1 context canceled
}

func ExampleCrawler_OnError() {
	s := site()
	s.Close() // no server listens any more
	c := kumo.New(kumo.Delay(0), kumo.Tries(1))
	c.OnError(func(e *kumo.Error) { fmt.Println(e.Kind) })
	err := c.Run(context.Background(), s.URL)
	fmt.Println(errors.Is(err, kumo.ErrNothing))
	// Output:
	// refused
	// true
}

func ExampleCrawler_OnRequest() {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/robots.txt" {
			fmt.Println(r.URL, "for", r.Header.Get("Accept-Language"))
		}
		showing(sitePages)(w, r)
	}))
	defer s.Close()
	c := kumo.New(kumo.Delay(0))
	c.OnRequest(func(r *kumo.Request) {
		if strings.HasSuffix(r.URL, "/missing") {
			r.Veto("known to be missing")
			return
		}
		r.Header.Set("Accept-Language", "de")
	})
	if err := c.Run(context.Background(), s.URL); err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Stats().Rules)
	// Output:
	// / for de
	// /a for de
	// /b for de
	// map[vetoed:1]
}

func ExampleCrawler_OnLink() {
	s := site()
	defer s.Close()
	c := kumo.New(kumo.Delay(0))
	c.OnLink(func(l *kumo.Link) {
		switch {
		case l.Element == "a" && l.Text == "broken":
			l.Veto("it says so")
		case strings.HasSuffix(l.URL, "/a"):
			l.URL = strings.Replace(l.URL, "/a", "/lone", 1) // in place of the old one; l.Add would follow both
		}
	})
	c.OnPage(func(p *kumo.Page) { fmt.Println(p.Title) })
	if err := c.Run(context.Background(), s.URL); err != nil {
		log.Fatal(err)
	}
	// Unordered output:
	// Home
	// Nobody links here
	// B
}

func ExampleCrawler_FindLinks() {
	s := serving(map[string]string{"/list": `{"next": "/list2"}`, "/list2": `{"items": 2}`})
	defer s.Close()
	c := kumo.New(kumo.Delay(0))
	c.FindLinks(func(p *kumo.Page) []string {
		var list struct{ Next string }
		if json.Unmarshal(p.Body, &list) != nil || list.Next == "" {
			return nil
		}
		return []string{list.Next}
	})
	c.OnPage(func(p *kumo.Page) { fmt.Println(p.Type, string(p.Body)) })
	if err := c.Run(context.Background(), s.URL+"/list"); err != nil {
		log.Fatal(err)
	}
	// Output:
	// application/json {"next": "/list2"}
	// application/json {"items": 2}
}

func ExampleCrawler_Stats() {
	s := site()
	defer s.Close()
	c := kumo.New(kumo.Delay(0))
	if err := c.Run(context.Background(), s.URL); err != nil { // another goroutine may call it meanwhile
		log.Fatal(err)
	}
	n := c.Stats()
	fmt.Println(n.Pages, "pages,", n.Waiting, "waiting,", n.Statuses)
	// Output: 4 pages, 0 waiting, map[200:3 404:1]
}

func ExamplePage_HTML() {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=iso-8859-1")
		fmt.Fprint(w, "<p>caf\xe9")
	}))
	defer s.Close()
	c := kumo.New(kumo.Delay(0), kumo.Depth(0))
	c.OnPage(func(p *kumo.Page) { fmt.Printf("%s %q %s\n", p.Charset, p.Body, p.HTML()) })
	if err := c.Run(context.Background(), s.URL); err != nil {
		log.Fatal(err)
	}
	// Output: windows-1252 "<p>caf\xe9" <p>café
}

func ExamplePage_Text() {
	const prose = "The tide comes in twice a day, and twice a day it leaves the flats to the birds, who know it well."
	s := serving(map[string]string{"/": `<title>Tides - The Shore</title><nav><a href="/">Home</a> <a href="/us">Us</a>
		</nav><article><h1>Tides</h1><p>` + prose + `</p><p>` + prose + `</p></article><footer>All rights reserved</footer>`})
	defer s.Close()
	c := kumo.New(kumo.Delay(0), kumo.Depth(0))
	c.OnPage(func(p *kumo.Page) { fmt.Println(p.Article().Headline, strings.Count(p.Text(), prose)) })
	if err := c.Run(context.Background(), s.URL); err != nil {
		log.Fatal(err)
	}
	// Output: Tides 2
}

// A table is a Store in memory, in place of a database.
type table struct {
	mu     sync.Mutex // guards below
	rows   map[string]int
	synced int // rows that survive a crash
}

func (t *table) Put(p *kumo.Page) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows[p.URL] = p.Status // replaces an earlier row: a page may come again after a crash
	return nil
}

func (t *table) Sync() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.synced = len(t.rows)
	return nil
}

func ExampleKeep() {
	s := site()
	defer s.Close()
	t := &table{rows: map[string]int{}}
	if err := kumo.New(kumo.Delay(0), kumo.Keep(t)).Run(context.Background(), s.URL); err != nil {
		log.Fatal(err)
	}
	fmt.Println(t.synced, t.rows[s.URL+"/missing"])
	// Output: 4 404
}

func ExampleLimit() {
	s := site()
	defer s.Close()
	err := kumo.New(kumo.Delay(0), kumo.Limit(2)).Run(context.Background(), s.URL)
	fmt.Println(errors.Is(err, kumo.ErrLimit), err)
	// Output: true limit reached: 2 pages
}

func ExamplePagesPerHost() {
	s := site()
	defer s.Close()
	c := kumo.New(kumo.Delay(0), kumo.PagesPerHost(3))
	err := c.Run(context.Background(), s.URL)
	fmt.Println(c.Stats().Pages, c.Stats().Rules, err)
	// Output: 3 map[max-pages-per-host:1] <nil>
}

func ExampleOverride() {
	s := site()
	defer s.Close()
	c := kumo.New(kumo.Delay(0), kumo.Override("{match: 127.0.0.1, max-pages-per-host: 2, delay: 1ms}"))
	err := c.Run(context.Background(), s.URL)
	fmt.Println(c.Stats().Pages, err)
	// Output: 2 <nil>
}

func ExamplePrefer() {
	s := site()
	defer s.Close()
	c := kumo.New(kumo.Delay(0), kumo.Prefer(regexp.MustCompile(`/b$`), 100))
	c.OnPage(func(p *kumo.Page) { fmt.Println(p.Title) })
	if err := c.Run(context.Background(), s.URL+"/a", s.URL); err != nil {
		log.Fatal(err)
	}
	// Output:
	// A
	// B
	// Home
}

func ExampleHeader() {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, code, ok := r.BasicAuth(); ok && r.URL.Path == "/" {
			fmt.Println(r.Header.Get("X-Team"), code)
		}
	}))
	defer s.Close()
	c := kumo.New(kumo.Depth(0), kumo.Delay(0), kumo.Header("X-Team", "search"), kumo.BasicAuth("me", "hunter2"))
	if err := c.Run(context.Background(), s.URL); err != nil {
		log.Fatal(err)
	}
	// Output: search hunter2
}

func ExampleCookies() {
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if k, err := r.Cookie("consent"); err == nil && r.URL.Path == "/" {
			fmt.Println(k.Value)
		}
	}))
	defer s.Close()
	c := kumo.New(kumo.Delay(0), kumo.Cookies(s.URL, &http.Cookie{Name: "consent", Value: "yes"}))
	if err := c.Run(context.Background(), s.URL); err != nil {
		log.Fatal(err)
	}
	// Output: yes
}

func ExampleProxy() {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			fmt.Println("asked for", r.URL)
		}
		showing(sitePages)(w, r)
	}))
	defer proxy.Close()
	c := kumo.New(kumo.Delay(0), kumo.Depth(0), kumo.Proxy(proxy.URL), kumo.AllowPrivate())
	if err := c.Run(context.Background(), "http://a.test/"); err != nil {
		log.Fatal(err)
	}
	// Output: asked for http://a.test/
}

func ExampleTLS() {
	s := httptest.NewTLSServer(showing(sitePages))
	defer s.Close()
	roots := x509.NewCertPool()
	roots.AddCert(s.Certificate())
	c := kumo.New(kumo.Delay(0), kumo.TLS(&tls.Config{RootCAs: roots}))
	if err := c.Run(context.Background(), s.URL); err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Stats().Pages)
	// Output: 4
}

// hostsFile finds names as /etc/hosts does.
type hostsFile map[string]netip.Addr

func (h hostsFile) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	addr, ok := h[host]
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return []netip.Addr{addr}, nil
}

func ExampleResolver() {
	s := site()
	defer s.Close()
	hosts := hostsFile{"shop.test": netip.MustParseAddr("127.0.0.1")}
	c := kumo.New(kumo.Delay(0), kumo.Resolver(hosts), kumo.AllowPrivate())
	if err := c.Run(context.Background(), strings.Replace(s.URL, "127.0.0.1", "shop.test", 1)); err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Stats().Pages)
	// Output: 4
}

func ExampleMaxBody() {
	s := serving(map[string]string{"/": "<p>" + strings.Repeat("long ", 1000)})
	defer s.Close()
	c := kumo.New(kumo.Delay(0), kumo.MaxBody(1000))
	c.OnPage(func(p *kumo.Page) { fmt.Println(len(p.Body), p.Truncated) })
	if err := c.Run(context.Background(), s.URL); err != nil {
		log.Fatal(err)
	}
	// Output: 1000 true
}

func ExampleScope() {
	s := serving(map[string]string{"/docs/": `<a href="1">1</a> <a href="/blog">blog</a>`, "/docs/1": "<p>1",
		"/blog": "<p>blog"})
	defer s.Close()
	c := kumo.New(kumo.Delay(0), kumo.Scope("prefix"), kumo.Exclude(regexp.MustCompile(`\.pdf$`)))
	found := map[string]bool{}
	c.OnPage(func(p *kumo.Page) { found[strings.TrimPrefix(p.URL, s.URL)] = true }) // of one host, one after another
	if err := c.Run(context.Background(), s.URL+"/docs/"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(slices.Sorted(maps.Keys(found)))
	// Output: [/docs/ /docs/1]
}

func ExamplePage_Find() {
	s := serving(map[string]string{"/": `<ul class=menu><li><a href="/a">First</a><li><a href="/b">Second</a></ul>`})
	defer s.Close()
	c := kumo.New(kumo.Delay(0), kumo.Depth(0))
	c.OnPage(func(p *kumo.Page) {
		for item := range p.Find("ul.menu > li") {
			for a := range item.Find("a[href]") {
				fmt.Println(item.Text(), a.Attr("href"), a.URL("href") == s.URL+a.Attr("href"))
			}
		}
	})
	if err := c.Run(context.Background(), s.URL); err != nil {
		log.Fatal(err)
	}
	// Output:
	// First /a true
	// Second /b true
}

func ExampleFields() {
	s := serving(map[string]string{"/": `<h1>A thing</h1><p class="price">1.234,50 €</p>
		<div class="review"><b>Ann</b> <time datetime="2024-05-17">last May</time></div><div class="review"><b>Ben</b></div>`})
	defer s.Close()
	type Review struct {
		By  string    `kumo:"b"`
		Day time.Time `kumo:"time@datetime"`
	}
	type Product struct {
		Title   string   `kumo:"h1,required"`
		Price   float64  `kumo:".price"`
		Reviews []Review `kumo:".review"`
	}
	c := kumo.New(kumo.Delay(0), kumo.Depth(0))
	c.OnPage(func(p *kumo.Page) {
		product, err := kumo.Fields[Product](p)
		fmt.Println(product.Title, product.Price, err)
		for _, r := range product.Reviews {
			fmt.Println(r.By, r.Day.Format(time.DateOnly))
		}
	})
	if err := c.Run(context.Background(), s.URL); err != nil {
		log.Fatal(err)
	}
	// Output:
	// A thing 1234.5 <nil>
	// Ann 2024-05-17
	// Ben 0001-01-01
}

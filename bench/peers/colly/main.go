// Colly crawls a web with Colly as in its examples: a queue in memory, robots.txt obeyed, links followed from the HTML.
// It stores nothing.
//
//	colly -threads 64 URL
package main

import (
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/gocolly/colly/v2"
	"github.com/gocolly/colly/v2/queue"
)

const mostQueued = 10_000_000 // URLs; more are dropped, and the crawl fails

func main() {
	threads := flag.Int("threads", 64, "number of concurrent fetches")
	flag.Parse()
	if err := crawl(flag.Arg(0), *threads); err != nil {
		fmt.Fprintln(os.Stderr, "colly:", err)
		os.Exit(1)
	}
}

func crawl(seed string, threads int) error {
	q, err := queue.New(threads, &queue.InMemoryQueueStorage{MaxSize: mostQueued})
	if err != nil {
		return err
	}
	c := colly.NewCollector()
	c.IgnoreRobotsTxt = false
	c.WithTransport(&http.Transport{
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true},
		MaxIdleConns:        4 * threads,
		MaxIdleConnsPerHost: 4,
		IdleConnTimeout:     time.Minute,
	})
	offered := &set{urls: make(map[string]struct{})}
	var full error
	var once sync.Once
	add := func(url string) {
		if !offered.add(url) {
			return
		}
		if err := q.AddURL(url); err != nil {
			once.Do(func() { full = fmt.Errorf("enqueue %s: %w", url, err) })
		}
	}
	c.OnHTML("a[href]", func(e *colly.HTMLElement) {
		if url := e.Request.AbsoluteURL(e.Attr("href")); url != "" {
			add(url)
		}
	})
	add(seed)
	return errors.Join(q.Run(c), full)
}

// A set keeps URLs from being enqueued twice. Colly itself drops duplicates only when it dequeues them.
type set struct {
	mu   sync.Mutex // guards urls
	urls map[string]struct{}
}

func (s *set) add(url string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, had := s.urls[url]; had {
		return false
	}
	s.urls[url] = struct{}{}
	return true
}

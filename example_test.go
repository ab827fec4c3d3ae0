package kumo_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"sync/atomic"

	"kumo"
)

// site serves three pages on loopback.
func site() *httptest.Server {
	pages := map[string]string{
		"/":     `<title>Home</title><a href="/a">a</a> <a href="/b">b</a>`,
		"/a":    `<title>A</title><a href="/b">b</a>`,
		"/b":    `<title>B</title><a href="/missing">broken</a>`,
		"/lone": `<title>Nobody links here</title>`,
	}
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, body)
	}))
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
	s.Close() // nobody listens any more
	c := kumo.New(kumo.Delay(0), kumo.Tries(1))
	c.OnError(func(e *kumo.Error) { fmt.Println(e.Kind) })
	if err := c.Run(context.Background(), s.URL); err != nil {
		log.Fatal(err)
	}
	// Output: refused
}

package kumo_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"

	"kumo"
)

// Handlers of pages run concurrently for all hosts in progress, even with few processors: each waits for all others.
func TestHandlersRunAtOnce(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs many loopback addresses")
	}
	hosts := 4*runtime.GOMAXPROCS(0) + 8
	var seeds []string
	for i := range hosts {
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/" {
				http.NotFound(w, r)
				return
			}
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, "<p>text")
		}))
		s.Listener.Close()
		l, err := net.Listen("tcp", fmt.Sprintf("127.81.0.%d:0", i+1))
		if err != nil {
			t.Fatal(err)
		}
		s.Listener = l
		s.Start()
		defer s.Close()
		seeds = append(seeds, s.URL+"/")
	}
	var all sync.WaitGroup
	all.Add(hosts)
	c := kumo.New(kumo.Delay(0), kumo.Concurrency(hosts))
	c.OnPage(func(*kumo.Page) {
		all.Done()
		all.Wait()
	})
	if err := c.Run(t.Context(), seeds...); err != nil {
		t.Fatal(err)
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"kumo/internal/lab/netlab"
)

// A spiderWeb is the web of the DSpider paper: equal hosts with equally many files of 1 to 10 units. A host's first
// file links to its others; some files also link to another host.
type spiderWeb struct {
	addrs []netip.Addr  // of the hosts
	sizes [][]int       // [host][file], in units
	links [][][]int     // [host][file]: other hosts
	pace  time.Duration // time to transfer a unit to a node

	mu   sync.Mutex // guards below
	gets []spiderGet
}

// A spiderGet is a served file.
type spiderGet struct {
	host, file int
	by         netip.Addr
	begin, end time.Time
}

const (
	spiderUnit    = 1000 // bytes of a unit
	spiderClasses = 10   // sizes are 1 to 10 units
	spiderDelays  = 9    // connection times are 1 to 9 ticks
	spiderLinks   = 5    // links of a host's files to other hosts, on average: as in the paper
	spiderStart   = 3    // hosts that a node starts with
)

// newSpiderWeb creates a web of hosts with some files each.
func newSpiderWeb(dice *rand.Rand, hosts, files int) *spiderWeb {
	w := &spiderWeb{}
	named := make([]bool, hosts)
	for range hosts {
		sizes, links := make([]int, files), make([][]int, files)
		for i := range files {
			sizes[i] = 1 + dice.IntN(spiderClasses)
			if dice.Float64() < float64(spiderLinks)/float64(files) {
				to := dice.IntN(hosts)
				links[i], named[to] = append(links[i], to), true
			}
		}
		w.sizes, w.links = append(w.sizes, sizes), append(w.links, links)
	}
	for to, is := range named { // otherwise no crawl could find the host
		if from := dice.IntN(hosts); !is {
			w.links[from][0] = append(w.links[from][0], to)
		}
	}
	return w
}

// serve serves the web on a host of the lab, with one address for each of its hosts.
func (w *spiderWeb) serve(t testing.TB, lab *netlab.Lab) {
	t.Helper()
	at, err := lab.Host("web", len(w.sizes))
	if err != nil {
		t.Fatal(err)
	}
	w.addrs = at.Addrs
	var l net.Listener
	if err := at.Do(func() (err error) { l, err = net.Listen("tcp", "0.0.0.0:80"); return err }); err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: w, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { server.Close() })
}

func (w *spiderWeb) url(host int) string { return "http://" + w.addrs[host].String() + "/" }

// ServeHTTP serves /N, the file N of a host, as slowly as the node's bandwidth requires.
func (w *spiderWeb) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	begin := time.Now()
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !ok {
		http.Error(out, "no address", http.StatusInternalServerError)
		return
	}
	host := -1
	for i, a := range w.addrs {
		if a == local.AddrPort().Addr().Unmap() {
			host = i
		}
	}
	file, err := strconv.Atoi("0" + strings.TrimPrefix(r.URL.Path, "/"))
	if err != nil || host < 0 || file >= len(w.sizes[host]) {
		http.NotFound(out, r)
		return
	}
	var b strings.Builder
	b.WriteString("<!doctype html><title>file</title>\n")
	if file == 0 {
		for i := range len(w.sizes[host]) - 1 {
			fmt.Fprintf(&b, "<a href=\"/%d\">%d</a>\n", i+1, i+1)
		}
	}
	for _, to := range w.links[host][file] {
		fmt.Fprintf(&b, "<a href=\"%s\">host</a>\n", w.url(to))
	}
	size := w.sizes[host][file]
	if rest := size*spiderUnit - b.Len(); rest > 0 {
		fmt.Fprintf(&b, "<!-- %0*d -->", max(1, rest-9), 1_000_000*host+file) // no two files are equal
	}
	time.Sleep(time.Duration(size) * w.pace) // before the whole body, so that it needs one round trip
	out.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, err = out.Write([]byte(b.String()))
	if err == nil {
		err = http.NewResponseController(out).Flush()
	}
	if err == nil || errors.Is(err, context.Canceled) {
		w.mu.Lock()
		w.gets = append(w.gets, spiderGet{host, file, from.Addr().Unmap(), begin, time.Now()})
		w.mu.Unlock()
	}
}

// served returns the served files.
func (w *spiderWeb) served() []spiderGet {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]spiderGet(nil), w.gets...)
}

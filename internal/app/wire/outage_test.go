package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"kumo/internal/app/job"
	"kumo/internal/base/stats"
	"kumo/internal/base/weburl"
	"kumo/internal/engine/crawl"
	"kumo/internal/lab/testmain"
)

// A district has many hosts, each on its own loopback address, behind one line that can be interrupted: then all
// connections end, and new ones are rejected.
type district struct {
	*testing.T
	net          byte // second byte of the addresses, unique per district
	hosts, pages int
	closes       bool // close each connection after a response
	port         string
	asked        sync.Map     // host and path → *atomic.Int32
	requests     atomic.Int64 // for pages

	mu      sync.Mutex
	servers map[string]*http.Server // the running ones
}

var districts atomic.Int32 // so far

func newDistrict(t *testing.T, hosts, pages int) *district {
	d := &district{T: t, net: byte(100 + districts.Add(1)%100), hosts: hosts, pages: pages,
		servers: map[string]*http.Server{}}
	l, err := net.Listen("tcp", d.address(0)+":0")
	if err != nil {
		t.Skipf("no loopback addresses but one here: %v", err)
	}
	_, d.port, _ = net.SplitHostPort(l.Addr().String())
	l.Close()
	d.join()
	t.Cleanup(func() { d.cut(0) })
	return d
}

func (d *district) address(n int) string {
	return netip.AddrFrom4([4]byte{127, d.net, byte(n >> 8), byte(n + 1)}).String()
}

func (d *district) seed(n int) string { return "http://" + d.address(n) + ":" + d.port + "/0" }

// join starts all hosts.
func (d *district) join() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for n := range d.hosts {
		at := d.address(n) + ":" + d.port
		if d.servers[at] != nil {
			continue
		}
		l, err := net.Listen("tcp", at)
		if err != nil {
			d.Fatal(err)
		}
		s := &http.Server{Handler: d}
		d.servers[at] = s
		go s.Serve(l)
	}
}

// cut stops all hosts from the n-th on.
func (d *district) cut(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for ; n < d.hosts; n++ {
		at := d.address(n) + ":" + d.port
		if s := d.servers[at]; s != nil {
			s.Close()
			delete(d.servers, at)
		}
	}
}

func (d *district) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var n int
	if _, err := fmt.Sscanf(r.URL.Path, "/%d", &n); err != nil || n >= d.pages {
		http.NotFound(w, r)
		return
	}
	count, _ := d.asked.LoadOrStore(r.Host+r.URL.Path, new(atomic.Int32))
	count.(*atomic.Int32).Add(1)
	d.requests.Add(1)
	w.Header().Set("Content-Type", "text/html")
	if d.closes {
		w.Header().Set("Connection", "close")
	}
	if n+1 < d.pages {
		fmt.Fprintf(w, `<a href="/%d">next</a>`, n+1)
	}
}

// covered returns the number of requested pages, and how many of them were requested more than once.
func (d *district) covered() (pages, again int) {
	d.asked.Range(func(_, count any) bool {
		pages++
		if count.(*atomic.Int32).Load() > 1 {
			again++
		}
		return true
	})
	return pages, again
}

func (d *district) job(dir string) *job.Job {
	j := &job.Job{Dir: dir, Name: "district"}
	for n := range d.hosts {
		j.Seeds = append(j.Seeds, d.seed(n))
	}
	j.Crawl.Depth = -1
	j.Frontier.Delay = 20 * time.Millisecond
	return j
}

// after calls do after a number of requests for pages.
func (d *district) after(pages int64, do func()) (wait func()) {
	var doing sync.WaitGroup
	doing.Go(func() {
		for d.requests.Load() < pages && d.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}
		do()
	})
	return doing.Wait
}

// untilCutOff waits until the crawl has detected that it is offline, however slow the machine is.
func (d *district) untilCutOff(j *job.Job) (wait func()) {
	told, before := make(chan struct{}, 1), j.Listener.Offline
	j.Listener.Offline = func(since time.Time, why string) {
		if before != nil {
			before(since, why)
		}
		select {
		case told <- struct{}{}:
		default:
		}
	}
	return func() {
		select {
		case <-told:
		case <-time.After(time.Minute):
		case <-d.Context().Done():
		}
	}
}

func runJob(t *testing.T, j *job.Job) (*stats.Report, error) {
	t.Helper()
	c, err := Open(t.Context(), j)
	if err != nil {
		t.Fatal(err)
	}
	report, err := c.Run(t.Context())
	if closing := c.Close(); closing != nil {
		t.Error(closing)
	}
	return report, err
}

func TestAnOutageOfTheLineCostsNoHost(t *testing.T) {
	t.Parallel()
	d := newDistrict(t, 30, 12)
	j := d.job(t.TempDir())
	j.Crawl.Tries = 1
	var off, back, gaveUp atomic.Int32
	j.Listener = crawl.Listener{
		Offline:   func(time.Time, string) { off.Add(1) },
		Online:    func(time.Duration, bool) { back.Add(1) },
		Abandoned: func(string, string) { gaveUp.Add(1) },
	}
	cutOff := d.untilCutOff(j)
	wait := d.after(150, func() {
		d.cut(0)
		cutOff()
		d.join()
	})
	report, err := runJob(t, j)
	wait()
	if err != nil {
		t.Fatal(err)
	}
	pages, again := d.covered()
	if pages != d.hosts*d.pages || again > d.hosts || report.Pages != int64(pages) {
		t.Errorf("%d of %d pages were asked for, %d answered, %d of them asked for again", pages, d.hosts*d.pages,
			report.Pages, again)
	}
	if off.Load() == 0 || back.Load() == 0 || gaveUp.Load() != 0 || report.Outages == 0 || report.AbandonedMany() {
		t.Errorf("told %d times to be cut off, %d to be back; %d hosts given up; report %+v", off.Load(), back.Load(),
			gaveUp.Load(), report)
	}
}

func TestHostsThatAreGoneTogetherAreTriedAgainWhileOthersWork(t *testing.T) {
	t.Parallel()
	d := newDistrict(t, 12, 40)
	j := d.job(t.TempDir())
	wait := d.after(60, func() {
		d.cut(8)
		time.Sleep(4 * time.Second)
		d.join()
	})
	report, err := runJob(t, j)
	wait()
	if pages, _ := d.covered(); err != nil || pages != d.hosts*d.pages || report.HostsAbandoned > 0 {
		t.Errorf("%d of %d pages, %d hosts given up, %v", pages, d.hosts*d.pages, report.HostsAbandoned, err)
	}
}

func TestACrawlThatStaysCutOffEnds(t *testing.T) {
	testmain.Slow(t)
	t.Parallel()
	d := newDistrict(t, 6, 200)
	j := d.job(t.TempDir())
	j.Crawl.OutageWait = 500 * time.Millisecond
	wait := d.after(30, func() { d.cut(0) })
	report, err := runJob(t, j)
	wait()
	if !errors.Is(err, crawl.ErrOffline) || report.HostsAbandoned > 0 || report.Waiting == 0 || report.Ended == "failed" {
		t.Fatalf("%v; %d hosts given up, %d URLs wait, ended %q", err, report.HostsAbandoned, report.Waiting, report.Ended)
	}
	d.join()
	report, err = runJob(t, j)
	if pages, _ := d.covered(); err != nil || pages != d.hosts*d.pages || report.Pages != int64(pages) {
		t.Errorf("the next run: %d of %d pages, %v", pages, d.hosts*d.pages, err)
	}
}

func TestTheOnlyHostIsWaitedForAndThenGivenUp(t *testing.T) {
	t.Parallel()
	d := newDistrict(t, 1, 200)
	j := d.job(t.TempDir())
	j.Crawl.OutageWait, j.Crawl.Patience, j.Frontier.RetryWait = 1500*time.Millisecond, time.Millisecond, time.Millisecond
	wait := d.after(5, func() { d.cut(0) })
	report, err := runJob(t, j)
	wait()
	if err != nil || report.HostsFailed != 1 || !report.AbandonedMany() || report.Outages != 1 {
		t.Errorf("%v; report %+v", err, report)
	}
}

func TestDeadSeedsAreNoOutage(t *testing.T) {
	t.Parallel()
	d := newDistrict(t, 60, 3)
	d.cut(6)
	j := d.job(t.TempDir())
	j.Frontier.RetryWait = time.Millisecond
	j.Listener = crawl.Listener{Offline: func(_ time.Time, why string) { t.Errorf("cut off: %s", why) }}
	began := time.Now()
	report, err := runJob(t, j)
	if err != nil || report.Pages != 18 || report.HostsAbandoned != 54 || !report.AbandonedMany() {
		t.Errorf("%d pages, %d hosts given up, %v", report.Pages, report.HostsAbandoned, err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestAProxyThatIsDownIsNoHostsFault(t *testing.T) {
	t.Parallel()
	d := newDistrict(t, 10, 12)
	proxy := newForwarder(t)
	j := d.job(t.TempDir())
	j.Fetch.Proxy = proxy.url()
	j.Crawl.Tries = 1
	cutOff := d.untilCutOff(j)
	wait := d.after(30, func() {
		proxy.stop()
		cutOff()
		proxy.start()
	})
	report, err := runJob(t, j)
	wait()
	if pages, _ := d.covered(); err != nil || pages != d.hosts*d.pages || report.HostsAbandoned > 0 ||
		report.Outages == 0 {
		t.Errorf("%d of %d pages, %d hosts given up, cut off %d times, %v", pages, d.hosts*d.pages, report.HostsAbandoned,
			report.Outages, err)
	}
}

// TestALineThatHangsUpIsAnOutage: all connections are accepted and closed at once.
func TestALineThatHangsUpIsAnOutage(t *testing.T) {
	t.Parallel()
	d := newDistrict(t, 10, 12)
	j := d.job(t.TempDir())
	j.Crawl.Tries = 2
	cutOff := d.untilCutOff(j)
	wait := d.after(40, func() {
		d.cut(0)
		stop := d.hangUp()
		cutOff()
		stop()
		d.join()
	})
	report, err := runJob(t, j)
	wait()
	if pages, _ := d.covered(); err != nil || pages != d.hosts*d.pages || report.HostsAbandoned > 0 ||
		report.Outages == 0 {
		t.Errorf("%d of %d pages, %d hosts given up, cut off %d times, %v", pages, d.hosts*d.pages, report.HostsAbandoned,
			report.Outages, err)
	}
}

// Just after a doubt that an answer ended, no new doubt begins for some seconds. Visits that fail in these seconds must
// not use up the attempts of their URLs.
func TestALineThatHangsUpJustAfterADoubtIsAnOutage(t *testing.T) {
	t.Parallel()
	d := newDistrict(t, 10, 60)
	j := d.job(t.TempDir())
	j.Crawl.Tries = 2
	j.Frontier.RetryWait = 100 * time.Millisecond
	wait := d.after(40, func() {
		d.cut(7)
		time.Sleep(time.Second)
		d.cut(0)
		stop := d.hangUp()
		time.Sleep(3 * time.Second)
		stop()
		d.join()
	})
	report, err := runJob(t, j)
	wait()
	if pages, _ := d.covered(); err != nil || pages != d.hosts*d.pages || report.HostsAbandoned > 0 {
		t.Errorf("%d of %d pages, %d hosts given up, offline %d times, %v", pages, d.hosts*d.pages, report.HostsAbandoned,
			report.Outages, err)
	}
}

// hangUp replaces all hosts by a server that closes connections at once.
func (d *district) hangUp() (stop func()) {
	var all []net.Listener
	for n := range d.hosts {
		l, err := net.Listen("tcp", d.address(n)+":"+d.port)
		if err != nil {
			d.Error(err)
			continue
		}
		all = append(all, l)
		go func() {
			for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
				_ = conn.(*net.TCPConn).SetLinger(0)
				conn.Close()
			}
		}()
	}
	return func() {
		for _, l := range all {
			l.Close()
		}
	}
}

// TestANameServerThatKnowsNothingIsAnOutage: for some time, it answers every query with NXDOMAIN or a server failure.
func TestANameServerThatKnowsNothingIsAnOutage(t *testing.T) {
	t.Parallel()
	for _, code := range []int{dns.RcodeNameError, dns.RcodeServerFailure} {
		t.Run(dns.RcodeToString[code], func(t *testing.T) {
			t.Parallel()
			d := newDistrict(t, 10, 60)
			d.closes = true
			var ill atomic.Bool
			var refused atomic.Int64
			j := d.job(t.TempDir())
			j.Frontier.Delay = 40 * time.Millisecond
			j.Fetch.DNSServer, j.Fetch.AllowPrivate = d.serveNames(&ill, &refused, code), true
			j.Frontier.RetryWait = 200 * time.Millisecond
			j.Seeds = nil
			for n := range 10 {
				j.Seeds = append(j.Seeds, fmt.Sprintf("http://h%d.site%d.test:%s/0", n, n, d.port))
			}
			wait := d.after(40, func() {
				ill.Store(true)
				time.Sleep(3 * time.Second)
				for range 300 { // on a slow machine, few names may have been looked up
					if refused.Load() > 40 {
						break
					}
					time.Sleep(100 * time.Millisecond)
				}
				ill.Store(false)
			})
			report, err := runJob(t, j)
			wait()
			if pages, _ := d.covered(); err != nil || pages != d.hosts*d.pages || report.HostsAbandoned > 0 ||
				report.Outages == 0 {
				t.Errorf("%d of %d pages, %d hosts given up, cut off %d times, %v", pages, d.hosts*d.pages, report.HostsAbandoned,
					report.Outages, err)
			}
		})
	}
}

// serveNames resolves each name h0, h1, ... to the host with that number, with a TTL of a second. While ill is true, it
// answers with a code, and counts that.
func (d *district) serveNames(ill *atomic.Bool, refused *atomic.Int64, code int) string {
	return serveDNS(d.T, func(name string) (string, int) {
		var n int
		switch _, err := fmt.Sscanf(name, "h%d.", &n); {
		case ill.Load():
			refused.Add(1)
			return "", code
		case err != nil:
			return "", dns.RcodeNameError
		}
		return d.address(n), dns.RcodeSuccess
	})
}

// serveHosts resolves names; "" means none.
func serveHosts(t *testing.T, at func(name string) string) string {
	return serveDNS(t, func(name string) (string, int) {
		if address := at(name); address != "" {
			return address, dns.RcodeSuccess
		}
		return "", dns.RcodeNameError
	})
}

func serveDNS(t *testing.T, answer func(name string) (address string, code int)) string {
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &dns.Server{PacketConn: pc, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		a := new(dns.Msg)
		a.SetReply(q)
		name := q.Question[0].Name
		address, code := answer(name)
		a.Rcode = code
		if code == dns.RcodeSuccess && q.Question[0].Qtype == dns.TypeA {
			a.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1},
				A: net.ParseIP(address)}}
		}
		_ = w.WriteMsg(a)
	})}
	go s.ActivateAndServe()
	t.Cleanup(func() { s.Shutdown() })
	return pc.LocalAddr().String()
}

// A wildcard serves any number of hosts of three domains at one address. Each page links to new hosts. After a number
// of requests it stops.
type wildcard struct {
	port     string
	links    int
	most     int64
	requests atomic.Int64
	server   *http.Server
	ended    sync.Once
}

func newWildcard(t *testing.T, address string, links int, most int64) *wildcard {
	t.Helper()
	l, err := net.Listen("tcp", address+":0")
	if err != nil {
		t.Skipf("no loopback addresses but one here: %v", err)
	}
	w := &wildcard{links: links, most: most}
	_, w.port, _ = net.SplitHostPort(l.Addr().String())
	w.server = &http.Server{Handler: w}
	go w.server.Serve(l)
	t.Cleanup(w.end)
	return w
}

func (w *wildcard) end() { w.ended.Do(func() { w.server.Close() }) }

func (w *wildcard) ServeHTTP(to http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		http.NotFound(to, r)
		return
	}
	n := w.requests.Add(1)
	if n > w.most {
		w.end()
		return
	}
	to.Header().Set("Content-Type", "text/html")
	for i := range w.links {
		fmt.Fprintf(to, `<a href="http://h%d-%d.evil%d.test:%s/">x</a>`, n, i, i%3, w.port)
	}
}

// The owner of a few domains serves any number of hosts, and then none. Other hosts are still fetched, and the crawl is
// never offline: with names that are looked up, and with given addresses.
func TestAnOwnerWhoDisappearsDoesNotHaltACrawl(t *testing.T) {
	t.Parallel()
	for _, lookUp := range []bool{false, true} {
		t.Run(fmt.Sprintf("look up %v", lookUp), func(t *testing.T) {
			t.Parallel()
			d := newDistrict(t, 5, 40)
			evil := newWildcard(t, d.address(1000), 6, 300)
			j := d.job(t.TempDir())
			j.Frontier.Hosts, j.Seeds = 256, nil
			for n := range d.hosts {
				j.Seeds = append(j.Seeds, fmt.Sprintf("http://h%d.site%d.test:%s/0", n, n, d.port))
			}
			j.Seeds = append(j.Seeds, fmt.Sprintf("http://h.evil0.test:%s/", evil.port))
			j.Frontier.Delay = 50 * time.Millisecond
			j.Scope = weburl.ScopeAny
			j.Fetch.AllowPrivate = true
			if lookUp {
				j.Fetch.DNSServer = serveHosts(t, func(name string) string {
					var n int
					if _, err := fmt.Sscanf(name, "h%d.site", &n); err == nil {
						return d.address(n)
					}
					return d.address(1000)
				})
			} else {
				for n := range d.hosts {
					j.Fetch.Resolve = append(j.Fetch.Resolve, fmt.Sprintf("h%d.site%d.test:%s:%s", n, n, d.port, d.address(n)))
				}
				j.Fetch.Resolve = append(j.Fetch.Resolve, fmt.Sprintf("*:%s:%s", evil.port, d.address(1000)))
			}
			ctx, enough := context.WithCancel(t.Context())
			defer enough()
			j.Listener = crawl.Listener{Offline: func(_ time.Time, why string) {
				t.Errorf("offline after %d requests of %d at other hosts: %s", d.requests.Load(), d.hosts*d.pages, why)
				enough()
			}}
			wait := d.after(int64(d.hosts*d.pages), enough) // the lost hosts are retried for minutes
			c, err := Open(t.Context(), j)
			if err != nil {
				t.Fatal(err)
			}
			_, err = c.Run(ctx)
			enough()
			if closing := c.Close(); closing != nil {
				t.Error(closing)
			}
			wait()
			if pages, _ := d.covered(); pages != d.hosts*d.pages || evil.requests.Load() < evil.most {
				t.Errorf("%d of %d pages, %d requests at hosts that disappear, %v", pages, d.hosts*d.pages,
					evil.requests.Load(), err)
			}
		})
	}
}

// A name that only --resolve could know does not exist: that is no outage, as other hosts answer at given addresses.
func TestADeadNameBesideGivenAddressesIsNoOutage(t *testing.T) {
	t.Parallel()
	d := newDistrict(t, 4, 10)
	j := d.job(t.TempDir())
	j.Seeds = []string{"http://nowhere.test:1/"}
	for n := range d.hosts {
		j.Seeds = append(j.Seeds, fmt.Sprintf("http://h%d.test:%s/0", n, d.port))
		j.Fetch.Resolve = append(j.Fetch.Resolve, fmt.Sprintf("h%d.test:%s:%s", n, d.port, d.address(n)))
	}
	j.Fetch.DNSServer = serveHosts(t, func(string) string { return "" })
	j.Frontier.RetryWait, j.Crawl.OutageWait = 50*time.Millisecond, 10*time.Second
	report, err := runJob(t, j)
	if pages, _ := d.covered(); err != nil || pages != d.hosts*d.pages || report.Outages != 0 ||
		report.HostsAbandoned != 1 {
		t.Errorf("%d of %d pages, offline %d times, %d hosts given up, %v", pages, d.hosts*d.pages, report.Outages,
			report.HostsAbandoned, err)
	}
}

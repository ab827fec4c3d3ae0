package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"kumo/internal/app/wire/sinks"
	"kumo/internal/archive/sink"
	"kumo/internal/base/stats"
	"kumo/internal/cluster/bus/bustest"
)

// A clusterSite is a site of many hosts. It records when each URL was last fetched.
type clusterSite struct {
	hosts, pages int
	port         string
	mu           sync.Mutex
	last         map[string]time.Time
	visits       int
}

// newClusterSite serves hosts with some pages each. Each host's first page links to its others and to all hosts.
func newClusterSite(t *testing.T, hosts, pages int) *clusterSite {
	s := &clusterSite{hosts: hosts, pages: pages, last: map[string]time.Time{}}
	server := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	t.Cleanup(func() { _ = server.Close() })
	for i := range hosts {
		l, err := net.Listen("tcp", net.JoinHostPort(s.address(i), s.port))
		if err != nil {
			t.Skipf("no further loopback addresses: %v", err)
		}
		_, s.port, _ = net.SplitHostPort(l.Addr().String())
		go func() { _ = server.Serve(l) }()
	}
	return s
}

func (s *clusterSite) address(i int) string { return fmt.Sprintf("127.83.5.%d", i+1) }

func (s *clusterSite) url(i int) string {
	return "http://" + net.JoinHostPort(s.address(i), s.port) + "/"
}

func (s *clusterSite) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.visits
}

func (s *clusterSite) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/robots.txt" {
		http.NotFound(w, r)
		return
	}
	s.mu.Lock()
	s.last["http://"+r.Host+r.URL.Path] = time.Now()
	s.visits++
	visits := s.visits
	s.mu.Unlock()
	fmt.Fprintf(w, "<html lang=en><title>%s</title><h1>visit %d</h1>", r.URL.Path, visits)
	if r.URL.Path == "/" {
		for i := range s.hosts {
			fmt.Fprintf(w, "<a href=%s>%d</a>", s.url(i), i)
		}
		for i := range s.pages {
			fmt.Fprintf(w, "<a href=/%d>%d</a>", i, i)
		}
	}
}

// A valve is a proxy that can refuse all connections.
type valve struct {
	addr   string
	to     string
	closed atomic.Bool
	mu     sync.Mutex
	open   map[net.Conn]bool
}

func newValve(t *testing.T, to string) *valve {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v := &valve{addr: l.Addr().String(), to: to, open: map[net.Conn]bool{}}
	t.Cleanup(func() { _ = l.Close(); v.set(true) })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go v.serve(c)
		}
	}()
	return v
}

func (v *valve) serve(c net.Conn) {
	defer c.Close()
	if v.closed.Load() {
		return
	}
	far, err := net.Dial("tcp", v.to)
	if err != nil {
		return
	}
	defer far.Close()
	v.mu.Lock()
	v.open[c], v.open[far] = true, true
	v.mu.Unlock()
	if v.closed.Load() {
		return
	}
	go func() { _, _ = io.Copy(far, c); _ = far.Close() }()
	_, _ = io.Copy(c, far)
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.open, c)
	delete(v.open, far)
}

func (v *valve) set(closed bool) {
	v.closed.Store(closed)
	v.mu.Lock()
	defer v.mu.Unlock()
	for c := range v.open {
		_ = c.Close()
	}
}

// behindValves returns the URLs of sinks for kumo start, without passwords and behind valves where possible, and the
// same with passwords and without valves.
func behindValves(t *testing.T) (shared, direct []string, valves []*valve) {
	servers := map[string]string{}
	for variable, path := range map[string]string{"KUMO_TEST_POSTGRES": "?table=cluster", "KUMO_TEST_OPENSEARCH": "/cluster",
		"KUMO_TEST_KAFKA": "/cluster", "KUMO_TEST_HBASE": "/cluster"} {
		if at := os.Getenv(variable); at != "" {
			servers[variable] = at + path
		}
	}
	if len(servers) == 0 {
		if os.Getenv("KUMO_TEST_LONG") == "" { // .ci/run has the servers
			t.Skip("SKIPPED: takes half a minute; set KUMO_TEST_LONG=1, or run it beside servers: .ci/sinks/testbed")
		}
		servers["KUMO_TEST_OPENSEARCH"] = newIndex(t).url()
	}
	for variable, at := range servers {
		u, err := url.Parse(at)
		if err != nil {
			t.Fatal(err)
		}
		direct = append(direct, at)
		if variable != "KUMO_TEST_KAFKA" { // its clients connect to the address that it advertises
			v := newValve(t, u.Host)
			valves, u.Host = append(valves, v), v.addr
		}
		if password, has := u.User.Password(); has {
			t.Setenv("PGPASSWORD", password)
			u.User = url.User(u.User.Username())
		}
		shared = append(shared, u.String())
	}
	return shared, direct, valves
}

// versions returns the newest version of each URL in a sink, and the number of records.
func versions(t *testing.T, at string) map[string]time.Time {
	t.Helper()
	s, err := sinks.Open(t.Context(), at, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	all := map[string]time.Time{}
	if err = s.Flush(t.Context()); err == nil {
		err = s.(sink.Lister).Each(t.Context(), func(url string, version time.Time) error {
			if version.After(all[url]) {
				all[url] = version
			}
			return nil
		})
	}
	if err != nil {
		t.Fatalf("%s: %v", sink.Redact(at), err)
	}
	return all
}

// A process is a node.
type process struct {
	cmd  *exec.Cmd
	out  bytes.Buffer
	over chan error
}

func newProcess(program string, args ...string) *process {
	p := &process{cmd: exec.Command(program, args...), over: make(chan error, 1)}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	return p
}

// start starts the process, which is killed at the end.
func (p *process) start(t *testing.T) {
	t.Helper()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.over <- p.cmd.Wait() }()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
}

func startProcess(t *testing.T, program string, args ...string) *process {
	t.Helper()
	p := newProcess(program, args...)
	p.start(t)
	return p
}

// startCrawl starts the crawl news when its servers answer.
func startCrawl(t *testing.T, kumo, address, site string, args ...string) {
	t.Helper()
	args = append([]string{"start", "--crawl", "news", "--join", address, "--allow-private", "--delay", "5ms", "--ip-delay",
		"0"}, append(args, site)...)
	var out []byte
	waitUntil(t, "the crawl starts", func() (is bool) {
		var err error
		if out, err = exec.Command(kumo, args...).CombinedOutput(); err != nil {
			t.Logf("%v: %s", err, out)
		}
		return err == nil
	})
}

func waitUntil(t *testing.T, what string, is func() bool) {
	t.Helper()
	for begin := time.Now(); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Since(begin) > 90*time.Second {
			t.Fatalf("%s: not within %v", what, time.Since(begin))
		}
	}
}

// Three nodes send their records to the crawl's sinks, and one is lost with its disk and with records that the sinks do
// not have. At the end each sink has each URL once, at its newest visit.
func TestSinksOfACluster(t *testing.T) {
	const hosts, pages = 12, 60
	shared, direct, valves := behindValves(t)
	kumo, site, dir := kumoProgram(t), newClusterSite(t, hosts, pages), t.TempDir()
	rules := filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(rules, []byte("- {name: page, url: ., fields: {visit: {css: h1, regex: '[0-9]+', type: number}}}"),
		0o600); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	node := func(name string) *process {
		args := []string{"node", "-q", "--crawl", "news", "--name", name, "--out", filepath.Join(dir, name), "--min-free-disk",
			"0", "--sink-wait", "20s"}
		if name == "a" {
			return startProcess(t, kumo, append(args, "--listen", address)...)
		}
		return startProcess(t, kumo, append(args, "--join", address)...)
	}
	a := node("a")
	control := func(verb string, args ...string) (string, error) {
		out, err := exec.Command(kumo, append([]string{verb, "--crawl", "news", "--join", address}, args...)...).
			CombinedOutput()
		return string(out), err
	}
	waiting := func(name string) func() bool {
		return func() bool {
			out, err := control("status")
			return err == nil && strings.Contains(out, name+" (waiting)")
		}
	}
	waitUntil(t, "a waits", waiting("a"))
	b, c := node("b"), node("c")
	waitUntil(t, "b and c wait", func() bool { return waiting("b")() && waiting("c")() })
	args := []string{"--scope", "any", "--allow-private", "--delay", "200ms", "--ip-delay", "0", "--fields", rules}
	for _, at := range shared {
		args = append(args, "--sink", at)
	}
	if out, err := control("start", append(args, site.url(0))...); err != nil {
		t.Fatalf("%v: %s", err, out)
	}

	// The sinks have some of c's records when they stop to accept any. c then fetches more, and is lost.
	fetched := func() []byte { data, _ := os.ReadFile(filepath.Join(dir, "c", "pages.jsonl")); return data }
	waitUntil(t, "c's first records are sent", func() bool {
		data := fetched()
		if bytes.Count(data, []byte("\n")) < 10 {
			return false
		}
		saved, _ := filepath.Glob(filepath.Join(dir, "c", "state", "sinks", "crawl-*.json"))
		for _, name := range saved {
			data, err := os.ReadFile(name)
			var position struct{ Lengths []int64 }
			if err != nil || json.Unmarshal(data, &position) != nil || position.Lengths[0] == 0 {
				return false
			}
		}
		return len(saved) == len(shared)
	})
	for _, v := range valves {
		v.set(true)
	}
	before := bytes.Count(fetched(), []byte("\n"))
	waitUntil(t, "c fetches more", func() bool { return bytes.Count(fetched(), []byte("\n")) >= before+20 })
	_ = c.cmd.Process.Kill()
	<-c.over
	lost := bytes.Count(fetched(), []byte("\n"))
	if err := os.RemoveAll(filepath.Join(dir, "c")); err != nil {
		t.Fatal(err)
	}
	t.Logf("c is killed after %d pages, the last %d of them not sent", lost, lost-before)
	var out string
	waitUntil(t, "the status shows a sink that is down", func() bool {
		out, _ = control("status")
		return strings.Contains(out, "sink: ") && strings.Contains(out, "note: a: sink ")
	})
	t.Log(out)
	for _, v := range valves {
		v.set(false)
	}
	for _, p := range []*process{a, b} {
		select {
		case err := <-p.over:
			if err != nil {
				t.Errorf("%v\n%s", err, p.out.String())
			}
		case <-time.After(3 * time.Minute):
			t.Fatalf("the crawl does not end\n%s", p.out.String())
		}
	}

	if len(site.last) != hosts*(pages+1) {
		t.Errorf("%d URLs were fetched, want %d", len(site.last), hosts*(pages+1))
	}
	if again := site.count() - len(site.last); again < 20 {
		t.Errorf("%d pages were fetched again, but at least 20 were lost", again)
	}
	for _, at := range direct {
		has, older := versions(t, at), 0
		for url, visit := range site.last {
			if has[url].Before(visit.Truncate(time.Second).Add(-time.Second)) { // a visit begins before it is recorded
				older++
				t.Logf("%s is of %v, want %v", url, has[url], visit)
			}
		}
		t.Logf("%s: %d URLs", sink.Redact(at), len(has))
		if len(has) != len(site.last) || older > 0 {
			t.Errorf("%s has %d URLs, want %d; %d are older or missing", sink.Redact(at), len(has), len(site.last), older)
		}
	}
	wantVerified(t, filepath.Join(dir, "a"))
}

// After a crawl that ended without its sinks, the same command sends the rest, and ends.
func TestNodeSendsTheRest(t *testing.T) {
	const pages = 20
	kumo, x, y, site, dir := kumoProgram(t), newIndex(t), newIndex(t), pagesSite(t, pages), filepath.Join(t.TempDir(), "n")
	address := bustest.Addresses(t, 1)[0]
	args := []string{"node", "--crawl", "news", "--out", dir, "--min-free-disk", "0", "--listen", address, "--sink-wait",
		"300ms"}
	x.set(true)
	y.set(true)
	p := startProcess(t, kumo, args...)
	startCrawl(t, kumo, address, site, "--sink", x.url(), "--sink", y.url())
	err := <-p.over
	if p.cmd.ProcessState.ExitCode() != exitBehind {
		t.Fatalf("%v\n%s", err, p.out.String())
	}
	for _, want := range []string{"records are not sent to " + x.url(), "records are not sent to " + y.url(),
		"the same command sends the rest, or run: kumo export --to "} {
		if !strings.Contains(p.out.String(), want) {
			t.Errorf("no %q in:\n%s", want, p.out.String())
		}
	}
	x.set(false)
	if out := exitOf(t, exitBehind, kumo, args...); x.has() != pages+1 || y.has() != 0 {
		t.Fatalf("%d and %d of %d pages are there\n%s", x.has(), y.has(), pages+1, out)
	}
	y.set(false)
	out := exitOf(t, exitDone, kumo, args...)
	if y.has() != pages+1 || !strings.Contains(out, "this node sends the rest of its records") {
		t.Errorf("%d of %d pages are there\n%s", y.has(), pages+1, out)
	}
	for _, name := range []string{x.url(), y.url()} {
		data, err := os.ReadFile(filepath.Join(dir, "report.json"))
		var r stats.Report
		if err := errors.Join(err, json.Unmarshal(data, &r)); err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(r.Sinks, func(s stats.Sink) bool { return s.Sink == name })
		if i < 0 || r.Sinks[i].Waiting > 0 {
			t.Errorf("report.json has %+v", r.Sinks)
		}
	}
	wantVerified(t, dir)
}

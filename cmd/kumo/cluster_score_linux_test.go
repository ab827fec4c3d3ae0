package main

import (
	"encoding/json"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"kumo/internal/lab/netlab"
	"kumo/internal/lab/synthweb"
)

// crawlsInLab runs a crawl for each folder. The crawls are independent, and crawl a small web at the same time. It
// returns the server's log. A crawl that has made a request pauses until all have.
func crawlsInLab(t *testing.T, dirs ...string) (e *evidence, web *synthweb.Web, server *synthweb.Server) {
	t.Helper()
	lab := netlab.ForTest(t, 1)
	web = synthweb.New(synthweb.Clean(1, 4, 60))
	server = serveInLab(t, lab, web)
	var running []*netlab.Process
	for _, dir := range dirs {
		host := lab.Add(t, filepath.Base(dir))
		p, err := host.Start(exec.Command(kumoProgram(t), "crawl", "-q", "-o", dir, "--delay", "50ms", "--ip-delay", "0",
			"--scope", "any", "--allow-private",
			"--contact", "test@example.org", "--dns-server", server.DNS(), server.SeedURLs()[0]))
		if err != nil {
			t.Fatal(err)
		}
		running = append(running, p)
		for !slices.ContainsFunc(server.Log(), func(r synthweb.Request) bool { return r.Client == host.Addr() }) {
			select {
			case <-p.Done():
				t.Fatalf("%s has ended without a request", dir)
			case <-time.After(time.Millisecond):
			}
		}
		if err := p.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range running {
		if err := p.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range running {
		if err := p.Wait(time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	server.Close()
	return &evidence{log: server.Log(), delay: 50 * time.Millisecond}, web, server
}

// TestScoreOfOneCrawl: a crawl passes the checks, until a record is missing or one is extra.
func TestScoreOfOneCrawl(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	e, web, server := crawlsInLab(t, dir)
	slips, violations := e.meetings()
	if len(slips)+len(violations)+len(e.causes())+len(e.strays()) > 0 {
		t.Errorf("%v, %v, %v", slips, violations, e.causes())
	}
	truth := web.Truth(synthweb.TruthOptions{})
	if wrong, err := e.compare(truth, server.Port(), []string{dir}); err != nil || len(wrong) > 0 {
		t.Errorf("%v, %q", err, wrong)
	}
	name := filepath.Join(dir, "pages.jsonl")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(strings.TrimSpace(string(data))+"\n", "\n")
	if err := os.WriteFile(name, []byte(strings.Join(lines[1:], "")+lines[1]), 0o666); err != nil {
		t.Fatal(err)
	}
	wrong, err := e.compare(truth, server.Port(), []string{dir})
	if err != nil || len(wrong) != 2 || !strings.HasSuffix(wrong[0], "is in no record") ||
		!strings.HasSuffix(wrong[1], "is in 2 records, and was asked for 1 times") {
		t.Errorf("%v, %q", err, wrong)
	}
}

// TestScoreOfTwoCrawls runs two crawls on the same hosts. The checks must find it.
func TestScoreOfTwoCrawls(t *testing.T) {
	dir := t.TempDir()
	e, _, _ := crawlsInLab(t, filepath.Join(dir, "a"), filepath.Join(dir, "b"))
	slips, violations := e.meetings()
	if len(violations) < 20 || len(slips) > 0 {
		t.Errorf("%d violations, %d slips", len(violations), len(slips))
	}
	if !slices.ContainsFunc(violations, func(m synthweb.Overlap) bool { return m.Before.Client != m.Request.Client }) {
		t.Error("no two clients on one host are seen")
	}
	if n := len(e.causes()[""]); n < 60 {
		t.Errorf("%d pages are seen to have been fetched twice", n)
	}
	// The same after a pause of one crawl counts as its slip at first.
	a, b := e.log[0].Client.String(), violations[0].Request.At
	e.faults = []*fault{{kind: pause, clients: []string{a}, began: b.Add(-time.Second), back: b.Add(-time.Millisecond)}}
	slips, rest := e.meetings()
	if len(slips) == 0 || len(slips)+len(rest) != len(violations) {
		t.Errorf("of %d violations %d are slips, and %d are not", len(violations), len(slips), len(rest))
	}
	if most := slices.MaxFunc(slips, func(x, y synthweb.Overlap) int { return x.Request.At.Compare(y.Request.At) }); most.Before.At.Sub(b) > slipTime {
		t.Errorf("a slip %v after the pause", most.Request.At.Sub(b))
	}
}

func TestStraysAndSilence(t *testing.T) {
	zero := time.Now()
	log := synthweb.Log{}
	for _, r := range []struct {
		client string
		at     int
	}{{"10.77.0.1", 0}, {"10.77.0.1", 1000}, {"10.77.0.2", 5000}, {"10.77.0.1", 9100}, {"10.77.0.2", 9900}} {
		at := zero.Add(time.Duration(r.at) * time.Millisecond)
		log = append(log, synthweb.Request{Host: "h", Client: netip.MustParseAddr(r.client), At: at, End: at,
			Target: "/" + at.String(), Status: 200, Whole: true})
	}
	f := &fault{kind: pause, clients: []string{"10.77.0.1"}, began: zero.Add(2 * time.Second),
		back: zero.Add(9 * time.Second)}
	e := &evidence{log: log, faults: []*fault{f}, delay: time.Second}
	if got := e.strays(); len(got) != 1 || got[0].At != log[3].At {
		t.Errorf("strays: %+v", got)
	}
	if slips, violations := e.meetings(); len(slips) != 1 || len(violations) != 0 {
		t.Errorf("%v, %v", slips, violations)
	}
	if got := e.silence(f); got != 4100*time.Millisecond {
		t.Errorf("silent for %v", got)
	}
	if got := e.held(f); got != 1 {
		t.Errorf("held %d", got)
	}
	// A repeated page is blamed on the fault of the node that fetched it first.
	e.log = append(e.log, synthweb.Request{Host: "h", Client: netip.MustParseAddr("10.77.0.2"),
		At: zero.Add(10 * time.Second), End: zero.Add(10 * time.Second),
		Target: log[1].Target, Status: 200, Whole: true})
	e.faults = append(e.faults, &fault{kind: kill, clients: []string{"10.77.0.3"}, began: zero.Add(3 * time.Second)})
	if got := e.causes(); len(got) != 1 || len(got[pause]) != 1 {
		t.Errorf("causes: %+v", got)
	}
}

func TestPlansHaveAllKinds(t *testing.T) {
	for seed := uint64(0); seed < 300; seed += 3 {
		seen := map[kind]bool{}
		for n := range uint64(3) {
			served := 0
			for _, f := range planFaults(seed+n, clusterServers) {
				seen[f.kind] = true
				if f.kind == control || f.kind != loss && f.node < clusterServers {
					served++
				}
				if f.kind == leave && f.node < clusterServers || f.with >= 0 && f.with == f.node {
					t.Errorf("seed %d: %v", seed+n, f)
				}
			}
			if served > 1 {
				t.Errorf("seed %d: %d faults of servers", seed+n, served)
			}
		}
		if len(seen) < len(kinds) {
			t.Errorf("seeds from %d: only %v", seed, seen)
		}
	}
}

func TestStatusNamesTheControlUnit(t *testing.T) {
	for text, want := range map[string]string{
		`{"control":"n2~34ca7fdf","crawl":"lab"}`: "n2",
		`{"control":"n3"}`:                        "n3", `{"crawl":"lab"}`: "", `{"control":true}`: "",
	} {
		var is labStatus
		if err := json.Unmarshal([]byte(text), &is); err != nil || is.control() != want {
			t.Errorf("%s: %q, want %q (%v)", text, is.control(), want, err)
		}
	}
}

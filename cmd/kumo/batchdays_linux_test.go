package main

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"kumo/internal/app/wire/places"
	"kumo/internal/archive/place"
	"kumo/internal/batch"
	"kumo/internal/batch/collection"
	"kumo/internal/content/hadoopconf/hadooptest"
	"kumo/internal/lab/synthweb"
)

// TestBatchDays crawls a changing web in 27 languages day after day, once on this machine and once on Hadoop, and
// compares all output of both. Without a Hadoop it compares runs with two reducers and with five. It compares the
// detected languages of pages with the true ones, and another program reads the XML. It logs the cost of each day and
// job.
//
//	KUMO_TEST_DAYS       how many days; none unless it is set
//	KUMO_TEST_LANGUAGES  of the web, a collection each (27)
//	KUMO_TEST_HOSTS      (81), KUMO_TEST_PAGES (5400), KUMO_TEST_PAGE_SIZE (bytes, 45000), KUMO_TEST_WEB (1, its seed):
//	                     the web
//	KUMO_TEST_INTERVAL   between two pages of a host (20ms)
//	KUMO_TEST_REDUCERS   (2)
//	KUMO_TEST_DEPTH      hops from a seed (100)
//	KUMO_TEST_KEEP       a folder for the output of this machine's crawl
func TestBatchDays(t *testing.T) {
	days := number("KUMO_TEST_DAYS", 0)
	if days == 0 {
		t.Skip("SKIPPED: it takes many minutes; set KUMO_TEST_DAYS to run it")
	}
	l := newBatchLab(t, labSize{languages: 27, hosts: 81, pages: 5400, pageSize: 45_000, depth: wholeDepth,
		interval: 20 * time.Millisecond})
	here, there := l.local("local", l.reducers), (*batchPlace)(nil)
	if os.Getenv("KUMO_TEST_HADOOP") != "" {
		there = l.hadoop()
	} else {
		there = l.local("local, 5 reducers", 5)
	}
	for n := range int(days) {
		t.Logf("=== day %d, %s", n+1, l.date(n))
		for _, p := range []*batchPlace{here, there} {
			l.runDay(p, n)
		}
		same(t, l.outcome(here, n), l.outcome(there, n))
		l.judgeVisits(here, n)
		l.judgeLanguages(here, n)
		l.judgePlans(here, n)
		l.costs(n, here, there)
	}
	for _, p := range []*batchPlace{here, there} {
		l.readXML(p)
		l.stats(p)
	}
}

// A batchLab is the common part of crawls of one made-up web. The web's addresses are the same on each day and for each
// crawl.
type batchLab struct {
	*testing.T
	dir, program string
	cfg          synthweb.Config // except its day
	port         int
	reducers     int
	depth        int
	interval     time.Duration
	first        time.Time // the first day
	collections  []*collection.Collection
	configs      string // their folder
	rules        string // a file of rules that make records of all their pages
}

// wholeDepth is a depth at which every page of the web is reached.
const wholeDepth = 100

// A labSize is the size of a web, and the depth and rate of its crawl, unless the environment sets them.
type labSize struct {
	languages, hosts, pages, pageSize, depth uint64
	interval                                 time.Duration
}

func newBatchLab(t *testing.T, size labSize) *batchLab {
	t.Helper()
	l := &batchLab{T: t, dir: t.TempDir(), reducers: int(number("KUMO_TEST_REDUCERS", 2)),
		depth: int(number("KUMO_TEST_DEPTH", size.depth)), interval: size.interval, first: time.Now().UTC()}
	if text := os.Getenv("KUMO_TEST_INTERVAL"); text != "" {
		var err error
		if l.interval, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	if dir := os.Getenv("KUMO_TEST_KEEP"); dir != "" {
		l.dir = dir
	}
	l.configs = filepath.Join(l.dir, "collections")
	l.port = freePort(t)
	web := webFlags{seed: number("KUMO_TEST_WEB", 1), hosts: int(number("KUMO_TEST_HOSTS", size.hosts)),
		pages: int(number("KUMO_TEST_PAGES", size.pages))}
	f := serveFlags{languages: []string{strconv.FormatUint(number("KUMO_TEST_LANGUAGES", size.languages), 10)},
		collections: l.configs, pageSize: int64(number("KUMO_TEST_PAGE_SIZE", size.pageSize))}
	f.opts.Port = l.port
	var err error
	if l.cfg, err = f.config(&web); err != nil {
		t.Fatal(err)
	}
	// Some hosts have a longer delay, so that politeness is not pages times one interval.
	l.cfg.Traits[synthweb.Delay], l.cfg.CrawlDelay = 100, 10*l.interval
	l.cfg.Traits[synthweb.Chunked], l.cfg.Traits[synthweb.Legacy] = 200, 100
	l.writeCollections()
	l.program = filepath.Join(l.dir, "kumo")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", l.program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("KUMO_TEST_WEB=%d: %s, in %d languages, %v between two pages of a host", l.cfg.Seed, synthweb.New(l.cfg),
		len(l.cfg.Languages), l.interval)
	return l
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// fieldRules make a record of each page, and one per link for half of them. One rule has a field that no page has.
const fieldRules = `- name: page
  url: ^http
  fields:
    title: {css: title, required: true}
    language: html@lang
    about: {meta: description}
    links: {css: a, attr: href, type: url, list: true}
    colour: .nowhere
- name: link
  url: "[02468]/?$"
  each: a
  fields: {to: {xpath: ./@href, type: url}, says: {xpath: .}}
`

func (l *batchLab) writeCollections() {
	l.Helper()
	l.rules = filepath.Join(l.dir, "rules.yaml")
	if err := os.WriteFile(l.rules, []byte(fieldRules), 0o600); err != nil {
		l.Fatal(err)
	}
	err := writeCollections(synthweb.New(l.cfg), l.cfg.Languages, l.port, l.configs)
	if err != nil {
		l.Fatal(err)
	}
	if l.collections, err = collection.LoadAll(l.configs); err != nil {
		l.Fatal(err)
	}
	for _, c := range l.collections {
		c.Interval, c.Depth = collection.Duration(l.interval), l.depth
		data, err := c.YAML()
		if err == nil {
			err = os.WriteFile(filepath.Join(l.configs, c.Code+".yaml"), data, 0o600)
		}
		if err != nil {
			l.Fatal(err)
		}
	}
}

// date is that of day n, from 0.
func (l *batchLab) date(n int) string { return l.first.AddDate(0, 0, n).Format(time.DateOnly) }

// web returns the web of day n.
func (l *batchLab) web(n int) *synthweb.Web {
	cfg := l.cfg
	cfg.Day = n + 1
	return synthweb.New(cfg)
}

// serve serves the web of day n.
func (l *batchLab) serve(n int) *synthweb.Server {
	l.Helper()
	server, err := synthweb.Serve(l.Context(), l.web(n), synthweb.ServeOptions{Port: l.port, DNS: true, Log: true})
	if err != nil {
		l.Fatal(err)
	}
	return server
}

// A batchPlace is a storage location of a crawl's output, with its runner.
type batchPlace struct {
	name, on, url string
	reducers      int
	at            place.Place
	cost          []dayCost // by day
}

// A dayCost is the cost of a day.
type dayCost struct {
	wall time.Duration
	text string // processor time by program
}

func (l *batchLab) open(name, on, url string, reducers int) *batchPlace {
	l.Helper()
	at, err := places.Open(l.Context(), url)
	if err != nil {
		l.Fatal(err)
	}
	return &batchPlace{name: name, on: on, url: url, reducers: reducers, at: at}
}

func (l *batchLab) local(name string, reducers int) *batchPlace {
	l.Helper()
	return l.open(name, "local", filepath.Join(l.dir, fmt.Sprint("local-", reducers)), reducers)
}

func (l *batchLab) hadoop() *batchPlace {
	l.Helper()
	return l.open("hadoop", "hadoop", hadooptest.TempFolder(l.T), l.reducers)
}

// command returns the kumo command that runs day n.
func (l *batchLab) command(p *batchPlace, n int, server *synthweb.Server) *exec.Cmd {
	return exec.CommandContext(l.Context(), l.program, "batch", "run", "--on", p.on, "--place", p.url, "--date",
		l.date(n), "--reducers", strconv.Itoa(p.reducers), "--allow-private", "--dns-server", server.DNS(),
		"--fields", l.rules, l.configs)
}

var costLine = regexp.MustCompile(`(?m)^cost: wall [\d.]+ s, (.*)$`)

// runDay serves the web of day n, and runs the day.
func (l *batchLab) runDay(p *batchPlace, n int) {
	l.Helper()
	server := l.serve(n)
	defer server.Close()
	cmd := l.command(p, n, server)
	if testbed := filepath.Join(filepath.Dir(os.Getenv("KUMO_TEST_HADOOP")), "testbed"); p.on == "hadoop" {
		if _, err := os.Stat(testbed); err == nil { // this program measures servers and containers
			cmd = exec.CommandContext(l.Context(), testbed, append([]string{"cost", filepath.Dir(testbed)}, cmd.Args...)...)
		}
	}
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		l.Fatalf("%s, day %d: %v\n%s", p.name, n+1, err, out)
	}
	used := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	c := dayCost{time.Since(began), fmt.Sprintf("CPU: command %.1f s; %d MiB at most resident",
		(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), used.Maxrss>>10)}
	if m := costLine.FindSubmatch(out); m != nil {
		c.text = string(m[1])
	}
	p.cost = append(p.cost, c)
	l.polite(p, server)
	score := server.Score()
	l.Logf("%s: %d requests, %d of robots.txt, answers %v", p.name, score.Requests, score.Robots, score.Statuses)
	if score.Missing > 0 && l.depth == wholeDepth || score.Beyond > 0 && n == 0 || score.Repeats > 0 ||
		score.RepeatsOther > 0 {
		l.Errorf("%s: the server saw:\n%s", p.name, score)
	}
}

// polite checks that the requests in a server's log were polite.
func (l *batchLab) polite(p *batchPlace, server *synthweb.Server) {
	l.Helper()
	score := server.Score()
	if score.Forbidden > 0 || score.BeforeRobots > 0 || score.Hasty > 0 || score.Impatient > 0 ||
		score.MostInFlight.Value > 1 {
		l.Errorf("%s: the server saw:\n%s", p.name, score)
	}
	meetings := server.Log().Overlaps(l.interval)
	for _, m := range meetings[:min(len(meetings), 5)] {
		l.Errorf("%s: %s%s came %v after %s", p.name, m.Request.Host, m.Request.Target, m.Gap, m.Before.Target)
	}
	l.Logf("%s: least gap %v, %d requests nearer than %v", p.name, score.LeastGap.Value, len(meetings), l.interval)
}

// state returns a collection's state of day n.
func (l *batchLab) state(p *batchPlace, c *collection.Collection, n int) *batch.State {
	l.Helper()
	s, err := batch.ReadState(l.Context(), p.at, c, l.date(n))
	if err != nil || s == nil || s.Next.Job != "" {
		l.Fatalf("%s, collection %s, day %d is not done: %+v %v", p.name, c.Code, n+1, s, err)
	}
	return s
}

// jobs returns the jobs of day n: of collections that share jobs, those of the collection with most.
func (l *batchLab) jobs(p *batchPlace, n int) (jobs []batch.Done) {
	l.Helper()
	for _, c := range l.collections {
		if s := l.state(p, c, n); len(s.Done) > len(jobs) {
			jobs = s.Done
		}
	}
	return jobs
}

// costs logs the cost of day n, job by job.
func (l *batchLab) costs(n int, places ...*batchPlace) {
	l.Helper()
	var b strings.Builder
	for _, p := range places {
		jobs := l.jobs(p, n)
		fmt.Fprintf(&b, "%s: %d jobs in %.1f s; %s\n", p.name, len(jobs), p.cost[n].wall.Seconds(), p.cost[n].text)
		for i := range jobs {
			j := &jobs[i]
			fmt.Fprintf(&b, "    round %d %-9s %6.1f s", j.Round, j.Job, j.Seconds)
			if all := j.Together[batch.CounterThreadTime]; all > 0 {
				fmt.Fprintf(&b, ", %d requests, idle %.0f%%", j.Together["requests"],
					100*float64(j.Together[batch.CounterIdleTime])/float64(all))
			}
			fmt.Fprintln(&b)
		}
	}
	l.Logf("what it took:\n%s", &b)
}

// stats logs the table of all days.
func (l *batchLab) stats(p *batchPlace) {
	l.Helper()
	out, err := exec.CommandContext(l.Context(), l.program, "batch", "stats", "--days", p.url).CombinedOutput()
	if err != nil {
		l.Errorf("%v\n%s", err, out)
	}
	l.Logf("%s: kumo batch stats --days\n%s", p.name, out)
}

// readXML validates all XML with xmllint, against the schema in its folder.
func (l *batchLab) readXML(p *batchPlace) {
	l.Helper()
	program, err := exec.LookPath("xmllint")
	if err != nil {
		l.Error(err)
		return
	}
	for _, c := range l.collections {
		for _, folder := range []string{"xml", "other"} {
			l.lint(p, program, c.Directory+"/"+folder)
		}
	}
}

// lint copies the XML of a folder to this machine, and validates it.
func (l *batchLab) lint(p *batchPlace, program, folder string) {
	l.Helper()
	dir := filepath.Join(l.TempDir(), folder)
	var parts []string
	schema := ""
	err := place.Walk(l.Context(), p.at, folder, func(name string, _ place.Info) error {
		if !strings.HasSuffix(name, ".xml") && !strings.HasSuffix(name, ".xsd") {
			return nil
		}
		data, err := place.ReadFile(l.Context(), p.at, name)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(name, folder)))
		if strings.HasSuffix(name, ".xsd") {
			schema = to
		} else {
			parts = append(parts, to)
		}
		return cmp.Or(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, data, 0o600))
	})
	if err != nil {
		l.Fatal(err)
	}
	if len(parts) == 0 {
		return
	}
	args := append([]string{"--noout", "--huge", "--schema", schema}, parts...)
	if out, err := exec.CommandContext(l.Context(), program, args...).CombinedOutput(); err != nil {
		l.Errorf("%s, %s: %v\n%.2000s", p.name, folder, err, out)
	}
}

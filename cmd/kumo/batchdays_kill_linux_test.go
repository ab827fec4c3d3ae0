package main

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"kumo/internal/batch"
	"kumo/internal/content/hadoopconf/hadooptest"
	"kumo/internal/lab/synthweb"
)

// TestBatchDayIsKilled runs a day on Hadoop KUMO_TEST_BATCH_KILLS times (none unless it is set). Each time it kills a
// NodeManager with its containers, a DataNode and the command itself, each at a random moment of a random job, and one
// of them, in turn, while pages are fetched. The result must be the same as that of an undisturbed day on this machine.
// The servers must see requests to a host no closer than the delay, and no request twice except those that the killed
// job repeated. KUMO_TEST_SEED replays the choices.
func TestBatchDayIsKilled(t *testing.T) {
	rounds := number("KUMO_TEST_BATCH_KILLS", 0)
	if rounds == 0 {
		t.Skip("SKIPPED: it takes some ten minutes a round; set KUMO_TEST_BATCH_KILLS to run it")
	}
	hadooptest.Conf(t)
	l := newBatchLab(t, labSize{languages: 3, hosts: 9, pages: 240, pageSize: 8_000, depth: 2,
		interval: 100 * time.Millisecond})
	whole := l.local("local", l.reducers)
	l.runDay(whole, 0)
	want, jobs := l.outcome(whole, 0), l.jobs(whole, 0)
	seed := number("KUMO_TEST_SEED", rand.Uint64()>>1)
	for n := range rounds {
		t.Run(fmt.Sprint(seed+n), func(t *testing.T) {
			t.Logf("KUMO_TEST_SEED=%d", seed+n)
			own := *l
			own.T = t
			d := &disturbed{batchLab: &own, place: own.hadoop(), dice: rand.New(rand.NewPCG(seed+n, 0))}
			d.choose(jobs, seed+n)
			d.run()
			same(t, want, d.outcome(d.place, 0))
		})
	}
}

// A disturbed day is one whose processes are killed.
type disturbed struct {
	*batchLab
	place  *batchPlace
	dice   *rand.Rand
	faults []*dayFault
	due    chan *dayFault // faults whose time has come
	jobs   []*jobSpan
	down   []hadooptest.Node
}

// A dayFault kills a process some time after a job has begun, or after a number of the job's requests.
type dayFault struct {
	node     hadooptest.Node // "": the command itself
	step     batch.Step
	after    time.Duration
	requests int64
	began    bool // whether the job has begun
	hit      *jobSpan
}

func (f *dayFault) String() string {
	after := f.after.Round(time.Millisecond).String()
	if f.requests > 0 {
		after = fmt.Sprint(f.requests, " requests")
	}
	return fmt.Sprintf("%s, %s after the beginning of %s of round %d", cmp.Or(string(f.node), "the command"), after,
		f.step.Job, f.step.Round)
}

// A jobSpan is the time during which a job ran, as its runner reported.
type jobSpan struct {
	batch.Step
	from, to time.Time // to is zero while it is
	faults   int
}

// latestFault is the longest time from a job's start to a kill; few jobs are shorter.
const latestFault = 15 * time.Second

// choose chooses the processes to kill. turn selects the process that is killed while pages are fetched.
func (d *disturbed) choose(jobs []batch.Done, turn uint64) {
	var steps, fetching []batch.Step
	for i := range jobs {
		steps = append(steps, jobs[i].Step)
		if jobs[i].Job == batch.JobCrawl && jobs[i].Together["requests"] > 30 {
			fetching = append(fetching, jobs[i].Step)
		}
	}
	d.faults = []*dayFault{{node: hadooptest.Node(fmt.Sprint("nodemanager", 1+d.dice.IntN(2)))},
		{node: hadooptest.Node(fmt.Sprint("datanode", 1+d.dice.IntN(2)))}, {}}
	d.dice.Shuffle(len(steps), func(i, j int) { steps[i], steps[j] = steps[j], steps[i] })
	for i, f := range d.faults {
		f.step, f.after = steps[i], time.Duration(d.dice.Int64N(int64(latestFault)))
	}
	f := d.faults[turn%uint64(len(d.faults))]
	f.step, f.requests = fetching[d.dice.IntN(len(fetching))], 1+d.dice.Int64N(30)
	d.due = make(chan *dayFault, len(d.faults))
	for _, f := range d.faults {
		d.Logf("to be killed: %v", f)
	}
}

// run runs the day, in as many processes as it takes, and checks the servers' logs.
func (d *disturbed) run() {
	d.Helper()
	server := d.serve(0)
	defer server.Close()
	began := time.Now()
	for life := 1; !d.live(server); life++ {
		if life > 100 {
			d.Fatal("it does not end")
		}
	}
	d.Logf("the day took %.0f s", time.Since(began).Seconds())
	d.revive()
	d.polite(d.place, server)
	d.judgeRepeats(server.Log())
	for _, f := range d.faults {
		if f.hit == nil {
			d.Errorf("not killed: %v", f)
		}
	}
}

var jobLine = regexp.MustCompile(`msg=(job|done) round=(\d+) job=(\w+)`)

// live runs the command until it ends or is killed, and reports whether the day is done.
func (d *disturbed) live(server *synthweb.Server) (done bool) {
	d.Helper()
	cmd := d.command(d.place, 0, server)
	out, in, err := os.Pipe()
	if err != nil {
		d.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = in, in
	err = cmd.Start()
	in.Close()
	if err != nil {
		d.Fatal(err)
	}
	lines, read := make(chan string, 1000), make(chan struct{})
	var said bytes.Buffer
	go func() {
		for s := bufio.NewScanner(io.TeeReader(out, &said)); s.Scan(); {
			lines <- s.Text()
		}
		close(lines)
		close(read)
	}()
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case line, more := <-lines:
			if !more {
				lines = nil
				continue
			}
			if m := jobLine.FindStringSubmatch(line); m != nil {
				round, _ := strconv.Atoi(m[2])
				d.note(m[1] == "job", batch.Step{Round: round, Job: m[3]}, server)
			}
		case f := <-d.due:
			if f.hit = d.strike(f); f.node != "" {
				continue
			}
			if err := cmd.Process.Kill(); err != nil {
				d.Error(err)
			}
			<-ended
			return false
		case err := <-ended:
			if err == nil {
				d.endJob()
				return true
			}
			<-read
			if strings.Contains(said.String(), "a collection can run only once at a time") {
				return d.waitForLease()
			}
			d.Fatalf("%v\n%s", err, said.String())
		}
	}
}

// waitForLease waits a little: a killed process holds its locks for another minute.
func (d *disturbed) waitForLease() bool {
	select {
	case <-time.After(5 * time.Second):
	case <-d.Context().Done():
	}
	return false
}

// note records that a job has begun or ended.
func (d *disturbed) note(begins bool, step batch.Step, server *synthweb.Server) {
	d.Helper()
	if !begins {
		d.endJob()
		d.revive()
		return
	}
	if n := len(d.jobs); n == 0 || d.jobs[n-1].Step != step { // else another process resumes the job
		d.endJob()
		d.jobs = append(d.jobs, &jobSpan{Step: step, from: time.Now()})
	}
	for _, f := range d.faults {
		if f.step == step && !f.began {
			f.began = true
			if f.requests == 0 {
				time.AfterFunc(f.after, func() { d.due <- f })
			} else {
				go d.awaitRequests(f, server)
			}
		}
	}
}

// awaitRequests makes a fault due after a number of further requests to the server.
func (d *disturbed) awaitRequests(f *dayFault, server *synthweb.Server) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for before := server.Requests(); server.Requests() < before+f.requests; {
		select {
		case <-tick.C:
		case <-d.Context().Done():
			return
		}
	}
	d.due <- f
}

// endJob ends the last job, if it is under way.
func (d *disturbed) endJob() {
	if n := len(d.jobs); n > 0 && d.jobs[n-1].to.IsZero() {
		d.jobs[n-1].to = time.Now()
	}
}

// strike kills a process of Hadoop, and returns the affected job: the running one, or else the last.
func (d *disturbed) strike(f *dayFault) *jobSpan {
	d.Helper()
	hit := d.jobs[len(d.jobs)-1]
	hit.faults++
	d.Logf("killed: %v; under way: %s of round %d, ended %v", f, hit.Job, hit.Round, !hit.to.IsZero())
	if f.node != "" {
		hadooptest.Kill(d.T, f.node)
		d.down = append(d.down, f.node)
	}
	return hit
}

// revive restarts the killed processes.
func (d *disturbed) revive() {
	d.Helper()
	if len(d.down) > 0 {
		hadooptest.ReviveAll(d.T, nil, d.down...)
		d.down = nil
	}
}

// judgeRepeats checks that only a killed job repeated a request, and only its own.
func (d *disturbed) judgeRepeats(log synthweb.Log) {
	d.Helper()
	type target struct{ host, target string }
	last := map[target]*jobSpan{}
	again, asked, rules := map[*jobSpan]int{}, map[*jobSpan]int{}, 0
	for _, r := range log {
		span := d.jobAt(r.At)
		if span == nil || span.Job != batch.JobCrawl {
			d.Errorf("%s%s was asked for while nothing fetches", r.Host, r.Target)
			continue
		}
		asked[span]++
		at := target{r.Host, r.Target}
		was := last[at]
		last[at] = span
		switch {
		case was == nil:
		case r.Target == "/robots.txt":
			rules++
		case was == span && span.faults > 0:
			again[span]++
		default:
			d.Errorf("%s%s was asked for in round %d and in round %d, in which nothing was killed", r.Host, r.Target,
				was.Round, span.Round)
		}
	}
	d.Logf("%d requests, of %d URLs; %d of a robots.txt again", len(log), len(last), rules)
	for _, j := range d.jobs {
		if j.faults > 0 || asked[j] > 0 {
			d.Logf("%s of round %d: %.1f s, hit %d times, %d requests, %d of them again", j.Job, j.Round,
				j.to.Sub(j.from).Seconds(), j.faults, asked[j], again[j])
		}
	}
}

// jobAt returns the job that ran at a time.
func (d *disturbed) jobAt(at time.Time) *jobSpan {
	for _, j := range d.jobs {
		if !at.Before(j.from) && !at.After(j.to) {
			return j
		}
	}
	return nil
}

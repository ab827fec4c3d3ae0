package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"kumo/internal/lab/synthweb"
)

// judge checks the crawl by the server's log and by all records, and adds the result to the sum.
func (r *round) judge(sum tallies) {
	r.Helper()
	r.server.Close()
	score := r.server.Score()
	e := &evidence{log: r.server.Log(), delay: clusterDelay, centreless: serversWith(r.strategy) == 0}
	for _, f := range r.faults {
		if !f.began.IsZero() {
			e.faults = append(e.faults, f)
		}
	}
	r.keep(e)
	r.add(sum, e, score)
	r.wantCovered(score)
	r.wantPolite(e)
	r.wantFewTwice(e, score)
	r.wantRecords(e, r.web.Truth(synthweb.TruthOptions{}))
}

// add assigns effects to faults, and logs them.
func (r *round) add(sum tallies, e *evidence, score synthweb.Score) {
	r.Helper()
	slips, violations := e.meetings()
	twice := e.causes()
	var said strings.Builder
	for i, f := range e.faults {
		x := sum.of(f.kind)
		x.runs++
		x.lost += score.Missing
		until := e.end()
		if i+1 < len(e.faults) {
			until = e.faults[i+1].began
		}
		_, stall := e.log.Stall(f.began, until)
		silent := e.silence(f)
		x.stall, x.taken = max(x.stall, stall), max(x.taken, silent)
		fmt.Fprintf(&said, "\n  %v; no request at all for %v, none to one of its hosts for %v", f,
			stall.Round(time.Millisecond), silent.Round(time.Millisecond))
	}
	for k, l := range twice {
		sum.of(k).twice += len(l)
		fmt.Fprintf(&said, "\n  twice, put down to %q: %d", k, len(l))
	}
	sum.of(pause).slips += len(e.strays())
	for _, m := range slips {
		sum.of(e.slipped(m).kind).slips++
	}
	for _, m := range violations {
		sum.of(e.blame(m)).violations++
	}
	by := map[string]int{}
	for _, q := range e.log {
		by[q.Client.String()]++
	}
	var shares []string
	for _, n := range r.nodes {
		shares = append(shares, fmt.Sprintf("%s %d", n.name, by[n.host.Addr().String()]))
	}
	r.Logf("seed %d: %s; a cluster after %v, done in %v; %d requests (%s), %d of %d covered, %d pages and %d others "+
		"twice, %d slips and %d more that nobody met, %d violations%s",
		r.seed, r.network, r.forming.Round(time.Millisecond), r.since(r.ended), score.Requests, strings.Join(shares, ", "),
		score.Covered, score.Truth, score.Repeats, score.RepeatsOther,
		len(slips), len(e.strays()), len(violations), said.String())
}

// blame returns the kind of the last fault before an overlap.
func (e *evidence) blame(m synthweb.Overlap) (why kind) {
	for _, f := range e.faults {
		if f.began.Before(m.Request.At) {
			why = f.kind
		}
	}
	return why
}

func (r *round) wantCovered(score synthweb.Score) {
	r.Helper()
	if score.Missing > 0 || score.Beyond > 0 || score.Forbidden > 0 || score.Unknown > 0 {
		r.Errorf("the servers saw:\n%s", score)
	}
}

// wantPolite checks that one node at a time contacts a host, with the delay in between. A paused node may notice it one
// request too late, on each of its connections.
func (c *labCluster) wantPolite(e *evidence) {
	c.Helper()
	slips, violations := e.meetings()
	for i, m := range violations {
		if i == 5 {
			c.Errorf("and %d more", len(violations)-i)
			break
		}
		c.Errorf("at %v %s asked %s for %s %v after %s had (%v to %v)", c.since(m.Request.At), m.Request.Client,
			m.Request.Host, m.Request.Target, m.Gap,
			m.Before.Client, c.since(m.Before.At), c.since(m.Before.End))
	}
	for _, f := range e.faults {
		n := 0
		for _, m := range slips {
			if e.slipped(m) == f {
				n++
			}
		}
		if held := e.held(f); f.kind == pause && !e.centreless && n > held {
			c.Errorf("%v: it made %d requests too many, and was on %d hosts", f, n, held)
		}
	}
}

// behind is how long the outcome of a fetch may be known only to the node that fetched.
const behind = 6 * time.Second

// wantFewTwice limits repeated pages: to requests in flight when a node was killed, stopped or cut off, to pages that
// it fetched shortly before (or after, if it was cut off) and could not report, and to 1 % of the pages. While many
// packets are lost, nodes that were declared dead count as cut off. In a mesh such nodes continue: a host then has two,
// which are counted as slips.
func (r *round) wantFewTwice(e *evidence, score synthweb.Score) {
	r.Helper()
	most := score.Truth / 100
	slips, _ := e.meetings()
	for _, f := range e.faults {
		from, until := f.began.Add(-time.Second), f.began
		if e.centreless { // marks go to backups in batches, and later under load
			from = f.began.Add(-behind / 2)
		}
		if e.electing(f) {
			from = f.began.Add(-behind)
		}
		for _, o := range e.faults { // until packets arrived again, nothing might have been reported
			if o.kind == loss && o.began.Before(from) && from.Before(o.back.Add(behind)) {
				from = o.began
			}
		}
		switch f.kind {
		case join, leave:
			continue
		case partition, pause:
			if e.centreless { // both sides have continued without each other's outcomes until they were connected again
				// if the crawl ended before it found the others, it continued alone until then
				if until = f.back.Add(joinTime); r.ended.Before(until) {
					until = e.end()
				}
			} else if f.kind == pause {
				break
			}
			until = until.Add(behind)
		case loss:
			if e.centreless {
				for _, m := range slips {
					if e.slipped(m) == f {
						most++
					}
				}
			}
			f = &fault{kind: loss, began: f.began, clients: r.givenUp()}
			until = until.Add(manyLostFor + behind)
		}
		for _, q := range e.log {
			if f.by(q) && q.At.After(from) && q.At.Before(until) {
				most++
			}
		}
		most += e.held(f)
	}
	if n := int(score.Repeats + score.RepeatsOther); n > most {
		r.Errorf("%d were fetched twice, at most %d may be", n, most)
	}
	if without := e.causes()[""]; len(without) > 0 {
		r.Errorf("%d were fetched twice before there was any fault, as %+v", len(without), without[0])
	}
}

// givenUp returns the addresses of nodes that have lost their membership.
func (r *round) givenUp() (clients []string) {
	for _, n := range r.nodes {
		if lives, err := filepath.Glob(filepath.Join(n.dir, "lost", "*")); err == nil && len(lives) > 0 {
			clients = append(clients, n.host.Addr().String())
		}
	}
	return clients
}

// electing reports whether a server had gone shortly before a fault, or had hardly received the others' messages. Until
// the servers have elected a leader, no log can be written.
func (e *evidence) electing(f *fault) bool {
	return slices.ContainsFunc(e.faults, func(o *fault) bool {
		until := o.began.Add(12 * time.Second)
		if o.kind == loss {
			until = until.Add(manyLostFor)
		}
		return o != f && (o.node < clusterServers && !e.centreless || o.kind == loss) && !o.began.After(f.began) &&
			f.began.Before(until)
	})
}

// wantRecords checks the files of each node against each other, and those of all against what the server saw.
func (c *labCluster) wantRecords(e *evidence, truth *synthweb.Truth) {
	c.Helper()
	var dirs []string
	for _, n := range c.nodes {
		for _, dir := range append(n.lost, n.dir) {
			lives, err := filepath.Glob(filepath.Join(dir, "lost", "*")) // of nodes that had lost their membership
			if err != nil {
				c.Error(err)
			}
			dirs = append(append(dirs, dir), lives...)
		}
	}
	c.wantVerified(dirs)
	wrong, err := e.compare(truth, c.server.Port(), dirs)
	if err != nil {
		c.Error(err)
	}
	for i, s := range wrong {
		if i == 5 {
			c.Errorf("and %d more", len(wrong)-i)
			break
		}
		c.Error(s)
	}
}

// waitless matches the note of kumo verify about a known URL without a visit and without a queue entry.
var waitless = regexp.MustCompile(`^note: state/seen: (\S+): it is known, but no file here has its outcome`)

// wantVerified checks that the files of each node agree. A skipped URL is in the list of the node that owned its host
// then.
func (c *labCluster) wantVerified(dirs []string) {
	c.Helper()
	var skipped strings.Builder
	for _, dir := range dirs {
		data, _ := os.ReadFile(filepath.Join(dir, "skipped.jsonl")) // the file may not exist
		skipped.Write(data)
	}
	for _, dir := range dirs {
		cmd := exec.Command(kumoProgram(c.T), "verify", "--all", dir)
		out, err := cmd.CombinedOutput()
		faults := 0
		for line := range strings.Lines(string(out)) {
			m := waitless.FindStringSubmatch(line)
			switch {
			case strings.HasPrefix(line, "fault: "):
				faults++
			case m == nil || strings.Contains(skipped.String(), strconv.Quote(m[1])):
				continue
			}
			c.Errorf("kumo verify %s: %s", dir, line)
		}
		// exit code of usage: it ended before it had a crawl
		if code := cmd.ProcessState.ExitCode(); err != nil && code != exitUsage && faults == 0 {
			c.Errorf("kumo verify %s: %v: %s", dir, err, out)
		}
	}
}

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	balancePages = 500
	balanceAlone = 100   // URLs that measure the speed of each node alone
	balanceRatio = 0.575 // the paper's: 134 s for 233 s
	balanceBest  = 0.88  // of the sum of all speeds; 0.95 on a quiet machine
	balanceTail  = 0.1   // of the run; 0.05 on a quiet machine
	balancePaper = 3     // runs by the paper's method
	balanceMost  = 10 * time.Minute
)

// TestBalance runs five nodes on machines as unequal as the paper's. They share 500 URLs of one site, KUMO_TEST_PAIRS
// times (default 5) evenly by a hash, and as often by predicted times. It runs if KUMO_TEST_BALANCE is set. Before,
// each node crawls 100 of the URLs by itself, and the five share them once without samples. Each run starts with the
// samples of the runs before it. With the last KUMO_TEST_PAPER of them (default 3), they share the URLs by the paper's
// method, too. KUMO_TEST_RUNS is the number of runs (default one more than pairs) and KUMO_TEST_URLS the number of
// URLs. KUMO_TEST_ALONE=0 skips the runs of single nodes, with all checks that need them. KUMO_TEST_KEEP is a folder for the
// nodes' files. KUMO_TEST_SAMPLES is a file of samples, with which the first run starts if it exists, and to which the
// last run's are written: then a series can be made one pair at a time.
func TestBalance(t *testing.T) {
	if os.Getenv("KUMO_TEST_BALANCE") == "" {
		t.Skip("SKIPPED: it takes a quarter of an hour, and root; set KUMO_TEST_BALANCE to run it")
	}
	preferred(t)
	pairs, seed := int(number("KUMO_TEST_PAIRS", 5)), number("KUMO_TEST_SEED", rand.Uint64N(1<<40))
	t.Logf("KUMO_TEST_SEED=%d", seed)
	j := &balanceJudge{T: t, plan: bedPlan{machines: unequal, pages: balancePages, seed: seed}, dir: t.TempDir()}
	j.plan.urls = int(number("KUMO_TEST_URLS", balancePages))
	if os.Getenv("KUMO_TEST_ALONE") != "0" {
		j.measureAlone()
	}
	first := 1 // run with samples
	if j.learnt(0) != "" {
		first = 0
	}
	runs, papers := max(int(number("KUMO_TEST_RUNS", 0)), pairs+first), int(number("KUMO_TEST_PAPER", balancePaper))
	for n := range runs {
		r := &balanceRow{}
		if first <= n && n < pairs+first {
			r.even = j.run(n+1, "shard", "")
		}
		r.by = j.run(n+1, "balance", j.learnt(n))
		if n >= max(first, runs-papers) {
			r.paper = j.run(n+1, "balance/paper", j.learnt(n))
		}
		j.rows = append(j.rows, r)
	}
	j.saveSamples(runs)
	j.judge()
}

// preferred gives the servers a higher priority than other processes of this machine: only the nodes should be slow.
func preferred(t *testing.T) {
	if err := syscall.Setpriority(syscall.PRIO_PGRP, 0, -15); err != nil {
		t.Logf("the web's server is not preferred: %v", err)
	}
}

// A balanceJudge runs and records crawls.
type balanceJudge struct {
	*testing.T
	plan  bedPlan
	dir   string    // for samples
	alone []*bedRun // by node
	rows  []*balanceRow
}

// A balanceRow is a run by predicted times, and the runs paired with it: even, and by the paper's method.
type balanceRow struct{ by, even, paper *bedRun }

// learnt returns the file with the samples of the first runs; "" if there are none yet.
func (j *balanceJudge) learnt(runs int) string {
	if runs == 0 {
		given := os.Getenv("KUMO_TEST_SAMPLES")
		if linesOf(given) == 0 {
			return ""
		}
		return given
	}
	return filepath.Join(j.dir, fmt.Sprintf("%d.csv", runs))
}

// saveSamples writes the samples of the first runs to the file of KUMO_TEST_SAMPLES.
func (j *balanceJudge) saveSamples(runs int) {
	to := os.Getenv("KUMO_TEST_SAMPLES")
	if to == "" {
		return
	}
	text, err := os.ReadFile(j.learnt(runs))
	if err == nil {
		err = os.WriteFile(to, text, 0o666)
	}
	if err != nil {
		j.Error(err)
	}
}

// measureAlone measures each node's own speed; each is a cluster by itself. They crawl at the same time, so that they
// share this machine as in other runs.
func (j *balanceJudge) measureAlone() {
	j.alone = make([]*bedRun, len(unequal))
	j.Run("alone", func(t *testing.T) {
		for i := range slices.Backward(unequal) {
			t.Run(fmt.Sprint("n", i+1), func(t *testing.T) {
				t.Parallel()
				p := j.plan
				p.machines, p.strategy, p.urls = unequal[i:i+1], "shard", min(balanceAlone, p.urls)
				j.alone[i] = newBed(t, fmt.Sprint("alone-n", i+1), p).crawl(balanceMost)
			})
		}
	})
	if j.Failed() {
		j.FailNow()
	}
	var b strings.Builder
	for i, r := range j.alone {
		fmt.Fprintf(&b, "\nn%d, %v: %.2f pages/s; %v", i+1, unequal[i], r.speed(), r)
	}
	j.Log(b.String())
}

func (j *balanceJudge) run(n int, strategy, samples string) (r *bedRun) {
	p := j.plan
	p.strategy, p.samples = strategy, samples
	name := fmt.Sprintf("%d-%s", n, strings.ReplaceAll(strategy, "/", "-"))
	j.Run(name, func(t *testing.T) {
		b := newBed(t, name, p)
		r = b.crawl(balanceMost)
		t.Log(r)
		if strategy == "balance" {
			b.export(j.learnt(n))
		}
	})
	if r == nil || j.Failed() {
		j.FailNow()
	}
	return r
}

// together returns the speed that no split can exceed: the sum of the nodes' own speeds, in pages per second.
func (j *balanceJudge) together() (sum float64) {
	for _, r := range j.alone {
		sum += r.speed()
	}
	return sum
}

func (j *balanceJudge) judge() {
	var b strings.Builder
	sum := j.together()
	fmt.Fprintf(&b, "%d URLs", j.plan.urls)
	if sum > 0 {
		fmt.Fprintf(&b, "; all nodes together %.2f pages/s: %.1f s", sum, float64(j.plan.urls)/sum)
	}
	b.WriteString("\n\n")
	fmt.Fprintf(&b, "| run | samples | even s | balance s | ratio | of the best | tail s | tail %% | pages |\n|%s\n",
		strings.Repeat(" --- |", 9))
	var best, tails []float64
	for i, row := range j.rows {
		r := row.by
		share, tail := r.speed()/sum, r.tail().Seconds()/r.took.Seconds()
		even, ratio, of := "", "", ""
		if sum > 0 {
			of = fmt.Sprintf("%.3f", share)
		}
		if row.even != nil {
			even = fmt.Sprintf("%.1f", row.even.took.Seconds())
			is := r.took.Seconds() / row.even.took.Seconds()
			ratio = fmt.Sprintf("%.3f", is)
			most := balanceRatio
			if j.plan.urls < 500 { // in so short a run, start and end weigh too much
				most = 1
			}
			if is > most {
				j.Errorf("run %d took %.3f of the time of the even split, want %.3f at most", i+1, is, most)
			}
		}
		if linesOf(r.samples) > 0 {
			best, tails = append(best, share), append(tails, tail)
		}
		fmt.Fprintf(&b, "| %d | %d | %s | %.1f | %s | %s | %.1f | %.1f | %s |\n", i+1, linesOf(r.samples), even,
			r.took.Seconds(), ratio, of, r.tail().Seconds(), 100*tail, r.pages())
	}
	j.Log(b.String() + j.papers())
	if len(best) == 0 || j.alone == nil {
		return // a few seconds matter much in a short run
	}
	slices.Sort(best)
	slices.Sort(tails)
	if is := best[len(best)/2]; is < balanceBest {
		j.Errorf("the median run has %.3f of all nodes' speed together, want %.2f", is, balanceBest)
	}
	if is := tails[len(tails)/2]; is > balanceTail {
		j.Errorf("in the median run the first node ended %.3f of the time before the last, want %.2f", is, balanceTail)
	}
}

// papers returns the table of the runs by the paper's method. They are compared with those by predicted times.
func (j *balanceJudge) papers() string {
	var b strings.Builder
	sum := j.together()
	fmt.Fprintf(&b, "\n| run | balance s | balance/paper s | ratio | of the best | tail s | tail %% | pages |\n|%s\n",
		strings.Repeat(" --- |", 8))
	for i, row := range j.rows {
		r := row.paper
		if r == nil {
			continue
		}
		ratio := r.took.Seconds() / row.by.took.Seconds()
		of := ""
		if sum > 0 {
			of = fmt.Sprintf("%.3f", r.speed()/sum)
		}
		fmt.Fprintf(&b, "| %d | %.1f | %.1f | %.2f | %s | %.1f | %.1f | %s |\n", i+1, row.by.took.Seconds(),
			r.took.Seconds(), ratio, of, r.tail().Seconds(), 100*r.tail().Seconds()/r.took.Seconds(), r.pages())
		if ratio < 0.9 {
			j.Errorf("run %d took %.2f times as long by the paper's method", i+1, ratio)
		}
	}
	return b.String()
}

// linesOf returns the number of samples in a file.
func linesOf(path string) int {
	text, _ := os.ReadFile(path) // "": none
	return max(0, strings.Count(string(text), "\n")-1)
}

package main

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"kumo/internal/lab/clusterdemo"
	"kumo/internal/lab/synthweb"
)

// judge logs the measurements, and checks them and the logs of all web servers.
func (f *failOver) judge() {
	var log synthweb.Log
	var truth, covered, twice int
	for _, s := range f.sites {
		s.Close()
		log = append(log, s.Log()...)
		score := s.Score()
		truth, covered, twice = truth+score.Truth, covered+score.Covered, twice+int(score.Repeats+score.RepeatsOther)
		if faults := clusterdemo.Faults(&score, f.Delay); len(faults) > 0 {
			f.Errorf("%s: %s:\n%s", s.web, strings.Join(faults, ", "), score)
		}
	}
	slices.SortStableFunc(log, func(a, b synthweb.Request) int { return a.At.Compare(b.At) })
	for _, k := range f.killings {
		if _, k.silent = log.Stall(k.at, k.back); k.waiting == 0 {
			k.silent = 0
		}
		f.Logf("at %v %v", k.at.Sub(f.Started).Round(time.Second), k)
	}
	f.Logf("KUMO_TEST_SEED=%d: %d requests in %v, %d of %d reachable URLs fetched, %d fetched again\n%s", f.seed, len(log),
		time.Since(f.Started).Round(time.Second), covered, truth, twice, f.table())
	leads, granted, silent := f.measured(nil, (*killing).untilLed), f.measured(nil, (*killing).untilGranted),
		f.measured(nil, (*killing).silence)
	if leads.median > failOverMedian || leads.most > failOverLimit {
		f.Errorf("until another node led: %v; the median may be %v, the greatest %v", leads, failOverMedian, failOverLimit)
	}
	if granted.most > failOverGrant {
		f.Errorf("until a new host was fetched: %v; the greatest may be %v", granted, failOverGrant)
	}
	if silent.most > failOverQuiet {
		f.Errorf("no request came for %v while other nodes than the killed one had something to fetch; %v is allowed",
			silent.most, failOverQuiet)
	}
	if most := truth/100 + 16*len(f.killings); twice > most {
		f.Errorf("%d were fetched twice, at most %d may be", twice, most)
	}
}

func (k *killing) String() string {
	ms := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
	return fmt.Sprintf("%s (server %v) killed, then %s: leads after %v, believed after %v; a seed accepted after %v, a "+
		"host fetched after %v; "+
		"no request for %v, %d URLs or more waited at the others; back after %v, settled %v later", k.victim, k.server,
		k.next,
		ms(k.leads), ms(k.believed), ms(k.added), ms(k.granted), ms(k.silent), k.waiting, ms(k.back.Sub(k.at)), ms(k.settled))
}

func (k *killing) untilLed() time.Duration      { return k.leads }
func (k *killing) untilBelieved() time.Duration { return k.believed }
func (k *killing) untilAdded() time.Duration    { return k.added }
func (k *killing) untilGranted() time.Duration  { return k.granted }
func (k *killing) silence() time.Duration       { return k.silent }
func (k *killing) untilSettled() time.Duration  { return k.settled }

// A spread is the distribution of durations.
type spread struct {
	n                  int
	median, tail, most time.Duration // tail: the 90th percentile
}

func (s spread) String() string {
	if s.n == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f / %.1f / %.1f", s.median.Seconds(), s.tail.Seconds(), s.most.Seconds())
}

// measured returns the distribution of a time over the selected kills, without those where the event did not happen.
func (f *failOver) measured(of func(*killing) bool, what func(*killing) time.Duration) spread {
	var all []time.Duration
	for _, k := range f.killings {
		if d := what(k); d > 0 && (of == nil || of(k)) {
			all = append(all, d)
		}
	}
	if len(all) == 0 {
		return spread{}
	}
	slices.Sort(all)
	return spread{len(all), all[(len(all)-1)/2], all[(len(all)*9+9)/10-1], all[len(all)-1]}
}

// table returns the measurements, in seconds.
func (f *failOver) table() string {
	kinds := []struct {
		name string
		of   func(*killing) bool
	}{
		{"with a server", func(k *killing) bool { return k.server }},
		{"without", func(k *killing) bool { return !k.server }},
		{"all", nil},
	}
	var b strings.Builder
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "median / 90 % / greatest, s\tkills\tanother leads\ta third believes it\tseed accepted\tnew host "+
		"fetched\tno request\t"+
		"settled again\t")
	for _, kind := range kinds {
		row := []any{f.measured(kind.of, func(k *killing) time.Duration { return k.back.Sub(k.at) }).n}
		for _, what := range []func(*killing) time.Duration{(*killing).untilLed, (*killing).untilBelieved,
			(*killing).untilAdded, (*killing).untilGranted,
			(*killing).silence, (*killing).untilSettled} {
			row = append(row, f.measured(kind.of, what))
		}
		fmt.Fprintf(t, "%s\t%d\t%v\t%v\t%v\t%v\t%v\t%v\t\n", append([]any{kind.name}, row...)...)
	}
	t.Flush()
	return b.String()
}

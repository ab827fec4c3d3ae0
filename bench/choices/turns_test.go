package choices

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"
)

// A contender does the work of one round each time that it is called.
type contender struct {
	name string
	run  func() error
	note string // on what it made of the work
}

// byTurns lets each contender do a round, then each another, and so on. units is how many of unit a round has.
func byTurns(b *testing.B, unit string, units int, all ...*contender) {
	b.Helper()
	times := make([][]float64, len(all))
	mallocs, bytes := make([]uint64, len(all)), make([]uint64, len(all))
	rounds := 0
	for b.Loop() {
		for i, c := range all {
			runtime.GC() // one does not sweep up after another
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			begin := cpu()
			if err := c.run(); err != nil {
				b.Fatalf("%s: %v", c.name, err)
			}
			times[i] = append(times[i], float64((cpu()-begin).Nanoseconds())/1e3/float64(units))
			runtime.ReadMemStats(&after)
			mallocs[i] += after.Mallocs - before.Mallocs
			bytes[i] += after.TotalAlloc - before.TotalAlloc
		}
		rounds++
	}
	var out strings.Builder
	tab := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tab, "a %s\tµs CPU\tx\tallocations\tbytes\t\n", unit)
	for i, c := range all {
		ratios := slices.Clone(times[i])
		for round := range ratios {
			ratios[round] /= times[0][round]
		}
		per := float64(rounds * units)
		fmt.Fprintf(tab, "%s\t%.2f\t%.2f\t%.1f\t%.0f\t%s\n", c.name, median(times[i]), median(ratios),
			float64(mallocs[i])/per, float64(bytes[i])/per, c.note)
	}
	tab.Flush()
	b.Logf("%d rounds of %d\n%s", rounds, units, out.String())
	b.ReportMetric(0, "ns/op") // of all together: it says nothing
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

// cpu is the processors' time that the process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it does not fail for the process itself
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

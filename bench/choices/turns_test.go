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

// A contender does one round of the work per call.
type contender struct {
	name string
	run  func() error
	note string // on its result
}

// byTurns runs a round of each contender, then another of each, and so on. units is the number of units in a round.
func byTurns(b *testing.B, unit string, units int, all ...*contender) {
	b.Helper()
	times := make([][]float64, len(all))
	mallocs, bytes := make([]uint64, len(all)), make([]uint64, len(all))
	rounds := 0
	for b.Loop() {
		for i, c := range all {
			runtime.GC() // no contender pays for another's garbage
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
	b.ReportMetric(0, "ns/op") // meaningless: the time of all contenders
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}

// cpu returns the CPU time of the process.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // cannot fail for the own process
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

package experiments

import (
	"fmt"
	"math"

	"kumo/internal/cluster/strategy/balance/model"
)

// A FactorRow is the result for one value of a factor with a program.
type FactorRow struct {
	Program   string
	Factor    int // index into Balance.Factors
	Value     float64
	Times     []float64 // of each run, in seconds
	Piece     Piece     // means over the runs
	Places    int       // pages fetched concurrently
	Predicted float64   // seconds, for a machine without samples
}

// Mean returns the mean of the runs' times and their standard deviation, in seconds.
func (r *FactorRow) Mean() (mean, deviation float64) { return meanAndDeviation(r.Times) }

// Limit names the resource that is in use nearly all the time, if there is one.
func (r *FactorRow) Limit() string {
	for _, l := range []struct {
		name string
		part float64
	}{{"network", r.Piece.Network}, {"processor", r.Piece.Processor}, {"disk", r.Piece.Disk}} {
		if l.part >= 0.85 {
			return l.name
		}
	}
	return ""
}

// factors runs experiment 1: the effect of each factor.
func (b *Balance) factors(p *Program) (rows []FactorRow) {
	m := b.learnMachines(p)
	for i := range b.Factors {
		for _, v := range b.Factors[i].Values {
			machine, urls := b.Factors[i].At(v)
			row := FactorRow{Program: p.Name, Factor: i, Value: v, Places: p.places(machine)}
			start := p.Start / machine.GHz
			for run := range b.Runs {
				piece := p.Fetch(machine, urls, b.pages(run))
				row.Times = append(row.Times, piece.Seconds)
				busy := piece.Seconds / (piece.Seconds - start) / float64(b.Runs) // share of the time after the start
				row.Piece.Seconds += piece.Seconds / float64(b.Runs)
				row.Piece.Network += piece.Network * busy
				row.Piece.Processor += piece.Processor * busy
				row.Piece.Disk += piece.Disk * busy
			}
			f, _ := m.Time("new", machine)
			row.Predicted = f(urls)
			rows = append(rows, row)
		}
	}
	return rows
}

func (b *Balance) learnMachines(p *Program) *model.Model {
	var samples []model.Sample
	for i := range b.Machines {
		rng := b.chance(drawMachines, uint64(i))
		machine := randomMachine(rng)
		for range b.PiecesEach {
			samples = append(samples, measure(p, i, machine, rng))
		}
	}
	return b.learn(samples, b.Seed, wayExact)
}

// An Effect is the effect of a factor, from its first value to its last.
type Effect struct {
	Change    float64 // of the time, relative to that at the first value; negative if it falls
	Threshold float64 // smaller changes do not count: two standard errors, or 1 %
	Predicted float64 // predicted change
	Error     float64 // of predictions: root mean square of log(predicted / simulated)
	First     *FactorRow
	Last      *FactorRow
	factor    *Factor
}

// Effects returns the effects of all factors with a program.
func (b *Balance) Effects(rows []FactorRow, program string) (all []Effect) {
	for i := range b.Factors {
		e := Effect{factor: &b.Factors[i]}
		squares, n := 0.0, 0
		for k := range rows {
			r := &rows[k]
			if r.Program != program || r.Factor != i {
				continue
			}
			if e.First == nil {
				e.First = r
			}
			e.Last = r
			mean, _ := r.Mean()
			d := math.Log(r.Predicted / mean)
			squares += d * d
			n++
		}
		if n < 2 {
			continue
		}
		changes := make([]float64, len(e.First.Times)) // run by run, because each run has the same pages for all values
		for run, first := range e.First.Times {
			changes[run] = e.Last.Times[run]/first - 1
		}
		mean, deviation := meanAndDeviation(changes)
		e.Change, e.Threshold = mean, max(flatly, 2*deviation/math.Sqrt(float64(len(changes))))
		e.Predicted, e.Error = e.Last.Predicted/e.First.Predicted-1, math.Sqrt(squares/float64(n))
		all = append(all, e)
	}
	return all
}

// sign returns +1 if the time rises with the factor, -1 if it falls, and 0 if it does neither.
func (e *Effect) sign() float64 {
	if math.Abs(e.Change) < e.Threshold {
		return 0
	}
	return math.Copysign(1, e.Change)
}

// explanation describes how the resources are used at both ends.
func (e *Effect) explanation() string {
	part := func(of func(Piece) float64) string {
		return fmt.Sprintf("%.0f to %.0f %%", 100*of(e.First.Piece), 100*of(e.Last.Piece))
	}
	return fmt.Sprintf("after the start the network is in use %s of the time, the cores %s, the disk %s; %d to %d pages "+
		"at once",
		part(func(p Piece) float64 { return p.Network }), part(func(p Piece) float64 { return p.Processor }),
		part(func(p Piece) float64 { return p.Disk }), e.First.Places, e.Last.Places)
}

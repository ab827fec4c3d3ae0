package experiments

import (
	"fmt"
	"math"
	"strings"

	"kumo/internal/view/results"
)

// smallTail is the largest share of the run between the first node's end and the last's for which ends count as close.
// The paper gives no number.
const smallTail = 0.1

// Judge evaluates all statements for each program.
func (b *Balance) Judge(r *BalanceResult) []results.Statement {
	var j balanceJudge
	for i := range b.Programs {
		p := &b.Programs[i]
		j.program = p.Name
		j.effects(b.Effects(r.Factors, p.Name), p)
		j.splits(r.Splits)
	}
	j.program = ""
	j.crawls(r.Crawls)
	return j.judged
}

type balanceJudge struct {
	program string // "" in experiment 5
	judged
}

func (j *balanceJudge) find(experiment int, text string, seen bool, numbers, why string) {
	of := fmt.Sprintf("experiment %d", experiment)
	if j.program != "" {
		of += ", program " + j.program
	}
	j.judged.add(of, text, seen, numbers, why)
}

func (j *balanceJudge) effects(all []Effect, p *Program) {
	without := 0
	numbers := ""
	for i := range all {
		if all[i].sign() == 0 {
			without++
			numbers += ", not " + all[i].factor.Name
		}
	}
	j.find(1, "each of the six has an effect on the running time", without == 0,
		fmt.Sprintf("%d have%s", len(all)-without, numbers), "another resource of the machine is the bottleneck")
	for i := range all {
		e := &all[i]
		f := e.factor
		way, word := 1., "longer"
		if f.Falls {
			way, word = -1, "shorter"
		}
		first, _ := e.First.Mean()
		last, _ := e.Last.Mean()
		values := strings.TrimSpace(fmt.Sprintf("%g to %g %s", e.First.Value, e.Last.Value, f.Unit))
		numbers := fmt.Sprintf("%.1f to %.1f s from %s: %+.1f %% ± %.1f %%, predicted %+.1f %%", first, last, values,
			100*e.Change, 100*e.Threshold, 100*e.Predicted)
		why := e.explanation()
		if f.Name == "cores" {
			why = "nothing migrates, and cores share the work; " + why
		}
		if f.Name == "cores" && p.Migration > 0 {
			numbers += "; an assumption, with the paper's reason"
		}
		j.find(1, fmt.Sprintf("with more %s the run is %s", f.Name, word), e.sign() == way, numbers, why)
	}
}

func (j *balanceJudge) splits(rows []SplitRow) {
	of := map[string]*SplitRow{}
	for i := range rows {
		if rows[i].Program == j.program {
			of[rows[i].Way] = &rows[i]
		}
	}
	for _, way := range []string{wayMethod, waySwarm, wayExact} {
		r, even := of[way], of[wayEven]
		if r == nil || even == nil {
			return
		}
		j.find(2, fmt.Sprintf("split by predictions (%s), the whole run takes %.3f of the even split's", way, paperRatio),
			r.Ratio <= paperRatio, fmt.Sprintf("%.1f s by %.1f s, %.3f", r.Run, even.Run, r.Ratio),
			fmt.Sprintf("the best split comes to %.3f", of[wayBest].Ratio))
		j.find(2, fmt.Sprintf("split by predictions (%s), all nodes end at about the same time", way), r.Tail <= smallTail,
			fmt.Sprintf("%.1f %% of the run lie between the first end and the last, %.1f %% with the even split", 100*r.Tail,
				100*even.Tail), fmt.Sprintf("pages differ: with the best split it is %.1f %%; predictions of the means are off "+
				"by up to %.0f %%", 100*of[wayBest].Tail, 100*r.maxError()))
	}
}

// maxError returns the largest relative error of a node's prediction.
func (r *SplitRow) maxError() (far float64) {
	for i, predicted := range r.Predicted {
		if mean := r.Mean(i); mean > 0 {
			far = max(far, math.Abs(predicted/mean-1))
		}
	}
	return far
}

// Mean returns the mean time of a node, in seconds.
func (r *SplitRow) Mean(node int) (mean float64) {
	for _, times := range r.Times {
		mean += times[node] / float64(len(r.Times))
	}
	return mean
}

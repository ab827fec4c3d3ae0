package repair

import (
	"context"
	"errors"
	"fmt"

	"kumo/internal/app/verify"
	"kumo/internal/base/stats"
)

func (r *repairer) diagnose(ctx context.Context) (whole bool, err error) {
	parts, done := r.open.View(r.Folder)
	said, faults := map[string]int{}, 0
	cfg := verify.Config{Moved: r.Moved, Fault: func(f verify.Fault) {
		if f.Remedy = ""; said[f.Check] < maxReported {
			r.Report(f.Check + ": " + f.String())
		}
		said[f.Check]++
		faults++
	}}
	report, err := verify.Run(ctx, parts, cfg)
	r.setCounts(report)
	if err = errors.Join(err, done()); err != nil {
		return false, err
	}
	for check, n := range said {
		if n > maxReported {
			r.Report(fmt.Sprintf("%s: %s more", check, stats.Count(n-maxReported, "faults")))
		}
	}
	return faults == 0, nil
}

// setCounts copies the counts of a verification, which are valid if there are no faults.
func (r *repairer) setCounts(report *verify.Report) {
	for _, c := range report.Checks {
		for _, n := range c.Counts {
			switch c.Name + ": " + n.Unit {
			case "pages: pages":
				r.result.Pages = n.N
			case "seen: URLs":
				r.result.Known = int(n.N)
			case "frontier: URLs waiting":
				r.result.Waiting = int(n.N)
			}
		}
	}
}

const maxReported = 10 // per check

package report

import (
	"errors"
	"fmt"
	"io"
	"time"

	"kumo/internal/lab/sim"
)

// errViolated ends a soak whose report lists violations.
var errViolated = errors.New("something was not as it must be")

// Soak prints a story, the violations, and the figures in the last line. Violations are an error.
func Soak(w io.Writer, story []string, report sim.Report, strategy string, nodes int) error {
	for _, line := range story {
		fmt.Fprintln(w, line)
	}
	for _, f := range report.Failed {
		for _, v := range f.Violations[:min(len(f.Violations), 10)] {
			fmt.Fprintf(w, "seed %d, at %v: %s\n", f.Seed, v.At.Round(time.Millisecond), v.Message)
		}
	}
	if _, err := fmt.Fprintln(w, report); err != nil {
		return err
	}
	if len(report.Failed) > 0 {
		return fmt.Errorf("seed %d of --strategy %s --nodes %d: %w", report.Failed[0].Seed, strategy, nodes,
			errViolated)
	}
	return nil
}

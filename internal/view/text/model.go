package text

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"kumo/internal/app/inspect"
	"kumo/internal/base/stats"
)

// Model prints a model that predicts the durations of a crawl's parts.
func Model(w io.Writer, m *inspect.Model) error {
	fmt.Fprintf(w, "%s: %s\n", m.Crawl, stats.Count(int64(m.Samples), "samples"))
	fmt.Fprintln(w, modelLine(m))
	if len(m.Nodes) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "samples\tcores\tGHz\tGB\tnet Mb/s\tdisk Mb/s\trests on\t")
	for _, p := range m.Nodes[0].Predictions {
		fmt.Fprintf(t, "%d URLs\t", p.URLs)
	}
	fmt.Fprintln(t, "  node")
	for i := range m.Nodes {
		n := &m.Nodes[i]
		fmt.Fprintf(t, "%d\t", n.Samples)
		for _, f := range []float64{n.Machine.Cores, n.Machine.GHz, n.Machine.MemoryGB, n.Machine.NetworkMbps,
			n.Machine.DiskMbps} {
			fmt.Fprintf(t, "%s\t", figure(f))
		}
		fmt.Fprintf(t, "%s\t", n.Basis)
		for _, p := range n.Predictions {
			fmt.Fprintf(t, "%s s\t", figure(p.Seconds))
		}
		name := n.Name
		if !n.Member {
			name += " (left)"
		}
		fmt.Fprintf(t, "  %s\n", name)
	}
	return t.Flush()
}

func modelLine(m *inspect.Model) string {
	switch {
	case m.Trained == 0:
		return fmt.Sprintf("no network yet: it needs %d training samples, plus those held back", m.Least)
	case m.HeldBack == 0:
		return fmt.Sprintf("a network, trained on %d; none is held back yet, so its error is unknown", m.Trained)
	}
	return fmt.Sprintf("a network, trained on %d; its error on %d held back is %s, and %s when predicting by pages "+
		"per second only", m.Trained,
		m.HeldBack, wholePercent(m.Error), wholePercent(m.ErrorByPace))
}

// wholePercent formats a share in whole percent.
func wholePercent(part float64) string { return fmt.Sprintf("%.0f %%", 100*part) }

// figure formats a number with three digits.
func figure(f float64) string {
	if f == 0 {
		return "-"
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(f, 'g', 3, 64), 64)
	if err != nil {
		rounded = f
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

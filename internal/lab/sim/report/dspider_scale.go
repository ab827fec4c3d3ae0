package report

import (
	"fmt"
	"io"
	"time"

	"kumo/internal/lab/sim/experiments"
)

// DSpiderScale prints at how many nodes the control unit is the limit, and writes the table and the picture.
func DSpiderScale(out io.Writer, to *Folder, s *experiments.Scale, rows []experiments.ScaleRow,
	limits []experiments.Limit) error {
	var w sheet
	w.printf("A claim costs %v, a message %v, an entry of the log %v; a node fetches %g pages a second, of which "+
		"%g name a host of %d pages\n\n", s.Claim, s.Message, s.Persist, s.Speed, s.Found, s.Pages)
	w.table(func(tab io.Writer) {
		fmt.Fprintln(tab, "nodes\tvariant\toffered/s\tanswered/s\tmedian\tp99\tprocessor\tlog\tcapacity\t")
		for i, r := range rows {
			if i > 0 && rows[i-1].Nodes != r.Nodes {
				fmt.Fprintln(tab, rule(9))
			}
			fmt.Fprintf(tab, "%d\t%v\t%.1f\t%.1f\t%v\t%v\t%s\t%s\t%s\t\n", r.Nodes, r.Variant, r.Offered, r.Answered,
				short(r.Median), short(r.P99), percent(r.Processor), percent(r.Log), percent(r.Capacity))
		}
	})
	w.printf("\n")
	for _, l := range limits {
		w.printf("%s\n", limitText(l, rows))
	}
	if err := w.finish(out, to, nil, nil); err != nil {
		return err
	}
	return to.plot(experiments.ScaleTable(rows), "The control unit, by the number of nodes",
		experiments.ScalePicture(rows, s.Shards))
}

// limitText says where a variant saturates, and from where on nodes fetch less for it.
func limitText(l experiments.Limit, rows []experiments.ScaleRow) string {
	text := fmt.Sprintf("%v: more is asked than can be answered from about %d nodes on", l.Variant, l.Nodes)
	if l.Beyond {
		text = fmt.Sprintf("%v: all is answered with up to %d nodes, the most that were tried", l.Variant, l.Nodes)
	}
	for _, r := range rows {
		if r.Variant == l.Variant && r.Capacity < 0.95 {
			return text + fmt.Sprintf("; with %d nodes these fetch %s of what they could", r.Nodes, percent(r.Capacity))
		}
	}
	return text + "; no number of nodes in the table fetches less for it"
}

// short is a time with as many digits as mean something.
func short(d time.Duration) time.Duration {
	unit := time.Microsecond
	for d > 1000*unit {
		unit *= 10
	}
	return d.Round(unit)
}

package report

import (
	"fmt"
	"io"
	"time"

	"kumo/internal/lab/sim/experiments"
)

// DSpider prints DSpider's experiments and which statements of its paper they confirm, and writes tables and pictures.
func DSpider(out io.Writer, to *Folder, w *experiments.DSpider, points []experiments.Point) error {
	var s sheet
	s.printf("%d files on %d hosts, %d runs from seed %d; mean ± standard deviation\n", w.Files, w.Hosts, w.Runs,
		w.Seed)
	figures := experiments.InFigures(points)
	for _, figure := range figures {
		s.figure(figure)
	}
	s.statements(to, "What the paper states. Changes are from one end of the axis to the other, in percent of the "+
		"mean, ± two standard errors.", experiments.Judge(points))
	if err := s.finish(out, to, nil, nil); err != nil {
		return err
	}
	for _, figure := range figures {
		set := figure[0].Setting
		title := fmt.Sprintf("Experiment %d, mode %v, %s", set.Experiment, set.Mode, set.Loading.LongName())
		if err := to.plot(experiments.FigureTable(figure), title, experiments.Figure(figure)); err != nil {
			return err
		}
	}
	return nil
}

// plot writes a table, and a picture of it as SVG, and as JSON for bench/plot.
func (f *Folder) plot(t experiments.Table, title string, pic *experiments.Picture) error {
	named := experiments.NamedPicture{Name: t.Name, Title: title, Picture: *pic}
	if err := f.results([]experiments.Table{t}, []experiments.NamedPicture{named}); err != nil {
		return err
	}
	return f.write(t.Name+".plot.json", pic.Write)
}

func (s *sheet) figure(points []experiments.Point) {
	set := points[0].Setting
	axis, what := "nodes", fmt.Sprintf("nodes, timeout %gT", set.Timeout)
	if set.Experiment == 2 {
		axis, what = "timeout", fmt.Sprintf("timeouts, %d nodes", set.Nodes)
	}
	title := fmt.Sprintf("Experiment %d (%s), mode %v, %s", set.Experiment, what, set.Mode, set.Loading.LongName())
	s.grid(title, func(tab io.Writer) {
		fmt.Fprintf(tab, "%s\tplace\t", axis)
		for _, m := range experiments.Measures {
			fmt.Fprintf(tab, "%s %s\t", m.Name, m.Unit)
		}
		fmt.Fprintln(tab, "not fetched\t")
		for i := range points {
			p := &points[i]
			fmt.Fprintf(tab, "%g\t%v\t", p.X(), p.Network)
			for _, m := range experiments.Measures {
				mean, deviation := p.Mean(m)
				fmt.Fprintf(tab, "%.2f ± %.2f\t", mean, deviation)
			}
			missed := 0.0
			for _, f := range p.Runs {
				missed += f.Missed / float64(len(p.Runs))
			}
			fmt.Fprintf(tab, "%s\t\n", percent(missed))
		}
	})
}

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
				fmt.Fprintln(tab, separator(9))
			}
			fmt.Fprintf(tab, "%d\t%v\t%.1f\t%.1f\t%v\t%v\t%s\t%s\t%s\t\n", r.Nodes, r.Variant, r.Offered, r.Answered,
				roundTime(r.Median), roundTime(r.P99), percent(r.Processor), percent(r.Log), percent(r.Capacity))
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

// roundTime is a time with as many digits as mean something.
func roundTime(d time.Duration) time.Duration {
	unit := time.Microsecond
	for d > 1000*unit {
		unit *= 10
	}
	return d.Round(unit)
}

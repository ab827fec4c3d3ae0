package report

import (
	"fmt"
	"io"

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
		title := fmt.Sprintf("Experiment %d, mode %v, %s", set.Experiment, set.Mode, set.Loading.InWords())
		if err := to.plot(experiments.FigureTable(figure), title, experiments.Figure(figure)); err != nil {
			return err
		}
	}
	return nil
}

// plot writes a table, and a picture of it as SVG, and as JSON for bench/plot.
func (f *Folder) plot(t experiments.Table, title string, pic *experiments.Picture) error {
	named := experiments.Named{Name: t.Name, Title: title, Picture: *pic}
	if err := f.results([]experiments.Table{t}, []experiments.Named{named}); err != nil {
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
	title := fmt.Sprintf("Experiment %d (%s), mode %v, %s", set.Experiment, what, set.Mode, set.Loading.InWords())
	s.grid(title, func(tab io.Writer) {
		fmt.Fprintf(tab, "%s\tplace\t", axis)
		for _, m := range experiments.Measures {
			fmt.Fprintf(tab, "%s %s\t", m.Name, m.Unit)
		}
		fmt.Fprintln(tab, "not fetched\t")
		for i := range points {
			p := &points[i]
			fmt.Fprintf(tab, "%g\t%v\t", p.X(), p.Place)
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

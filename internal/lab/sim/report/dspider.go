package report

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"kumo/internal/lab/sim/experiments"
	"kumo/internal/view/results"
)

// DSpider prints DSpider's experiments and which statements of its paper they confirm, and writes tables and pictures.
func DSpider(out io.Writer, to *Folder, w *experiments.DSpider, points []experiments.Point) error {
	fmt.Fprintf(out, "%d files on %d hosts, %d runs from seed %d; mean ± standard deviation\n", w.Files, w.Hosts, w.Runs,
		w.Seed)
	for _, figure := range experiments.InFigures(points) {
		if err := printFigure(out, figure); err != nil {
			return err
		}
		name := experiments.FigureName(figure[0].Setting)
		if err := to.table(name, func(w io.Writer) error { return experiments.WriteCSV(w, figure) }); err != nil {
			return err
		}
		set := figure[0].Setting
		title := fmt.Sprintf("Experiment %d, mode %v, %s", set.Experiment, set.Mode, loadings[set.Loading])
		if err := to.plot(name, title, experiments.Figure(figure)); err != nil {
			return err
		}
	}
	printJudgement(out, experiments.Judge(points))
	return nil
}

// plot writes a picture as SVG, and as JSON for bench/plot.
func (f *Folder) plot(name, title string, pic *experiments.Picture) error {
	if err := f.picture(name, title, pic.SVG); err != nil {
		return err
	}
	return f.write(name+".plot.json", pic.Write)
}

var loadings = map[experiments.Loading]string{experiments.OneByOne: "one file after another",
	experiments.Saturated: "links saturated"}

func printFigure(w io.Writer, points []experiments.Point) error {
	s := points[0].Setting
	what := fmt.Sprintf("nodes, timeout %gT", s.Timeout)
	if s.Experiment == 2 {
		what = fmt.Sprintf("timeouts, %d nodes", s.Nodes)
	}
	fmt.Fprintf(w, "\nExperiment %d (%s), mode %v, %s\n", s.Experiment, what, s.Mode, loadings[s.Loading])
	var b strings.Builder
	tab := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(tab, map[int]string{1: "nodes", 2: "timeout"}[s.Experiment], "\tplace\t")
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
	return flush(w, tab, &b)
}

func printJudgement(w io.Writer, all []experiments.Statement) {
	fmt.Fprintln(w, "\nWhat the paper states. Changes are from one end of the axis to the other, in percent of the "+
		"mean, ± two standard errors.")
	var told []results.Statement
	for _, s := range all {
		of := fmt.Sprintf("experiment %d, mode %v, %s", s.Experiment, s.Mode, loadings[s.Loading])
		told = append(told, results.Statement{Of: of, Seen: s.Seen, Statement: s.Text, Measured: s.Numbers, Why: s.Why})
	}
	printStatements(w, told)
}

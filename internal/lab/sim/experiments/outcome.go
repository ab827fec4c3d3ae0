package experiments

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"kumo/internal/view/chart"
	"kumo/internal/view/results"
)

// judged are statements of a paper, or of what kumo is to do, and whether the runs show them.
type judged []results.Statement

// add adds a statement about some runs. Why it is not seen is as far as the figures tell.
func (j *judged) add(of, text string, seen bool, numbers, why string) {
	if seen {
		why = ""
	}
	*j = append(*j, results.Statement{Of: of, Seen: seen, Statement: text, Measured: numbers, Why: why})
}

// A Table is a file of lines.
type Table struct {
	Name  string
	Lines [][]string // the first are the names of columns
}

func newTable(name string, columns ...string) Table { return Table{name, [][]string{columns}} }

// add adds a line; of numbers it has as many digits as mean something.
func (t *Table) add(cells ...any) {
	line := make([]string, len(cells))
	for i, c := range cells {
		if x, is := c.(float64); is {
			line[i] = number(x)
		} else {
			line[i] = fmt.Sprint(c)
		}
	}
	t.Lines = append(t.Lines, line)
}

// Write writes the table as CSV.
func (t *Table) Write(w io.Writer) error { return csv.NewWriter(w).WriteAll(t.Lines) }

func number(x float64) string { return strconv.FormatFloat(x, 'g', 8, 64) }

// A Picture is panels beside and below each other. It is written as JSON, which bench/plot draws: what draws is a
// module of its own, so that kumo depends neither on it nor on its fonts.
type Picture struct {
	Columns int     `json:"columns"`
	Panels  []Panel `json:"panels"`
}

// A Panel is curves over one axis.
type Panel struct {
	Title  string `json:"title"`
	X      string `json:"x"`
	Y      string `json:"y"`
	LogX   bool   `json:"log_x,omitempty"` // for values above 0
	LogY   bool   `json:"log_y,omitempty"`
	Curves Curves `json:"curves"`
}

// Curves are those of a panel.
type Curves []Curve

// add adds a point to the curve of a name, which is the last one if there was none.
func (c *Curves) add(name string, x, y float64) *Curve {
	at := slices.IndexFunc(*c, func(known Curve) bool { return known.Name == name })
	if at < 0 {
		at, *c = len(*c), append(*c, Curve{Name: name})
	}
	to := &(*c)[at]
	to.X, to.Y = append(to.X, x), append(to.Y, y)
	return to
}

// A Curve is points with a mark at each, and with bars as long as a deviation if there is one for each point.
type Curve struct {
	Name       string    `json:"name"`
	X          []float64 `json:"x"`
	Y          []float64 `json:"y"`
	Deviations []float64 `json:"deviations,omitempty"`
}

// A Named is a picture with the name of its file, without what says the format, and a title.
type NamedPicture struct {
	Name, Title string
	Picture
}

// Write writes the picture as JSON. Points without a value are left out.
func (p *Picture) Write(w io.Writer) error {
	known := *p
	known.Panels = make([]Panel, len(p.Panels))
	for i, panel := range p.Panels {
		known.Panels[i] = panel
		known.Panels[i].Curves = make(Curves, len(panel.Curves))
		for k := range panel.Curves {
			known.Panels[i].Curves[k] = panel.Curves[k].known()
		}
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	return enc.Encode(known)
}

// SVG draws the picture, its panels below each other. Deviations are not drawn.
func (p *Picture) SVG(w io.Writer, title string) error {
	plot := chart.Plot{Title: title}
	for _, panel := range p.Panels {
		a := chart.Axes{Title: panel.Title, X: panel.X, LogX: panel.LogX, LogY: panel.LogY}
		for _, c := range panel.Curves {
			a.Curves = append(a.Curves, chart.Curve{Name: c.Name, X: c.X, Y: c.Y})
		}
		plot.Panels = append(plot.Panels, a)
	}
	return plot.SVG(w)
}

// known is the curve without points that have no value, which JSON has no number for.
func (c *Curve) known() Curve {
	k := Curve{Name: c.Name}
	for i, y := range c.Y {
		if math.IsNaN(y) {
			continue
		}
		k.X, k.Y = append(k.X, c.X[i]), append(k.Y, y)
		if c.Deviations != nil {
			k.Deviations = append(k.Deviations, c.Deviations[i])
		}
	}
	return k
}

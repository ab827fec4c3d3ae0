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

// judged are the evaluated statements: a paper's, or goals of kumo.
type judged []results.Statement

// add adds a statement about some runs. why explains why it was not confirmed, as far as the figures show.
func (j *judged) add(of, text string, seen bool, numbers, why string) {
	if seen {
		why = ""
	}
	*j = append(*j, results.Statement{Of: of, Seen: seen, Statement: text, Measured: numbers, Why: why})
}

// A Table is a CSV file.
type Table struct {
	Name  string
	Lines [][]string // the first line has the column names
}

func newTable(name string, columns ...string) Table { return Table{name, [][]string{columns}} }

// add adds a line. Numbers get their significant digits.
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

// A Picture has panels in rows and columns. It is written as JSON for bench/plot, a separate module, so that kumo
// depends neither on a plotting library nor on its fonts.
type Picture struct {
	Columns int     `json:"columns"`
	Panels  []Panel `json:"panels"`
}

// A Panel has curves over a common axis.
type Panel struct {
	Title  string `json:"title"`
	X      string `json:"x"`
	Y      string `json:"y"`
	LogX   bool   `json:"log_x,omitempty"` // for positive values
	LogY   bool   `json:"log_y,omitempty"`
	Curves Curves `json:"curves"`
}

// Curves are the curves of a panel.
type Curves []Curve

// add adds a point to the named curve, which must be the last one, or is new.
func (c *Curves) add(name string, x, y float64) *Curve {
	at := slices.IndexFunc(*c, func(known Curve) bool { return known.Name == name })
	if at < 0 {
		at, *c = len(*c), append(*c, Curve{Name: name})
	}
	to := &(*c)[at]
	to.X, to.Y = append(to.X, x), append(to.Y, y)
	return to
}

// A Curve has points with markers, and error bars if there is a deviation for each point.
type Curve struct {
	Name       string    `json:"name"`
	X          []float64 `json:"x"`
	Y          []float64 `json:"y"`
	Deviations []float64 `json:"deviations,omitempty"`
}

// A NamedPicture is a picture with a title and the name of its file, without extension.
type NamedPicture struct {
	Name, Title string
	Picture
}

// Write writes the picture as JSON, without points that have no value.
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

// SVG draws the picture with its panels below each other, without deviations.
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

// known returns the curve without points that have no value (NaN), which JSON cannot represent.
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

package main

import (
	"fmt"
	"image/color"
	"io"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A picture is a picture written by kumo sim: panels in rows and columns.
type picture struct {
	Columns int
	Panels  []panel
}

// A panel has curves over a common axis.
type panel struct {
	Title, X, Y string
	LogX        bool `json:"log_x"` // for positive values
	LogY        bool `json:"log_y"`
	Curves      []curve
}

// A curve has points with markers, and error bars if there is a deviation for each point.
type curve struct {
	Name             string
	X, Y, Deviations []float64
}

// formats are the output formats.
var formats = []string{"png", "svg"}

// draw writes a picture in one of the formats. Equal pictures give equal bytes: there is no date, and the fonts are
// compiled in.
func (p *picture) draw(w io.Writer, format string) error {
	rows := (len(p.Panels) + p.Columns - 1) / p.Columns
	const width, height = 12 * vg.Centimeter, 8 * vg.Centimeter
	canvas, err := draw.NewFormattedCanvas(width*vg.Length(p.Columns), height*vg.Length(rows), format)
	if err != nil {
		return err
	}
	grid := make([][]*plot.Plot, rows)
	for i := range grid {
		grid[i] = make([]*plot.Plot, p.Columns)
	}
	for i := range p.Panels {
		if grid[i/p.Columns][i%p.Columns], err = p.Panels[i].plot(); err != nil {
			return err
		}
	}
	tiles := draw.Tiles{Rows: rows, Cols: p.Columns, PadX: 5 * vg.Millimeter, PadY: 5 * vg.Millimeter,
		PadTop: 3 * vg.Millimeter, PadBottom: 3 * vg.Millimeter, PadLeft: 3 * vg.Millimeter, PadRight: 3 * vg.Millimeter}
	whole := draw.New(canvas)
	whole.FillPolygon(color.White, []vg.Point{whole.Min, {X: whole.Max.X, Y: whole.Min.Y}, whole.Max,
		{X: whole.Min.X, Y: whole.Max.Y}})
	for i, line := range plot.Align(grid, tiles, whole) {
		for k, c := range line {
			if grid[i][k] != nil {
				grid[i][k].Draw(c)
			}
		}
	}
	_, err = canvas.WriteTo(w)
	return err
}

// Colors that color-blind readers can tell apart, and marker shapes.
var (
	inks = []color.Color{ink(0, 114, 178), ink(213, 94, 0), ink(0, 158, 115), ink(204, 121, 167), ink(86, 180, 233),
		ink(230, 159, 0)}
	shapes = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.PyramidGlyph{},
		draw.RingGlyph{}, draw.BoxGlyph{}}
)

func ink(r, g, b uint8) color.Color { return color.RGBA{r, g, b, 255} }

func (p *panel) plot() (*plot.Plot, error) {
	g := plot.New()
	g.Title.Text, g.X.Label.Text, g.Y.Label.Text = p.Title, p.X, p.Y
	lettering(g)
	for i, c := range p.Curves {
		if err := p.draw(g, c, inks[i%len(inks)], shapes[i%len(shapes)]); err != nil {
			return nil, fmt.Errorf("%s, %s: %w", p.Title, c.Name, err)
		}
	}
	p.scale(g)
	g.Add(plotter.NewGrid())
	return g, nil
}

// lettering sets the compiled-in fonts.
func lettering(g *plot.Plot) {
	for _, s := range []*text.Style{&g.Title.TextStyle, &g.X.Label.TextStyle, &g.Y.Label.TextStyle, &g.X.Tick.Label,
		&g.Y.Tick.Label,
		&g.Legend.TextStyle} {
		s.Font = font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(9)}
	}
	g.Title.TextStyle.Font.Size = vg.Points(11)
	g.Title.Padding = vg.Points(4)
	g.Legend.Top, g.Legend.Left = true, true
	g.Legend.Padding = vg.Points(2)
}

// scale sets the axes. Linear ones start at 0 and leave room at the top for the legend.
func (p *panel) scale(g *plot.Plot) {
	if p.LogX {
		g.X.Scale, g.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	if p.LogY {
		g.Y.Scale, g.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		g.Y.Max = 2 * max(g.Y.Max, g.Y.Min)
		return
	}
	g.Y.Min = min(0, g.Y.Min)
	g.Y.Max = max(1.25*g.Y.Max, g.Y.Min+1)
}

func (p *panel) draw(g *plot.Plot, c curve, colour color.Color, shape draw.GlyphDrawer) error {
	bars := errorBars{}
	for i, x := range c.X {
		y := c.Y[i]
		if p.LogX && x <= 0 || p.LogY && y <= 0 {
			continue
		}
		bars.XYs = append(bars.XYs, plotter.XY{X: x, Y: y})
		if c.Deviations != nil {
			bars.YErrors = append(bars.YErrors, struct{ Low, High float64 }{c.Deviations[i], c.Deviations[i]})
		}
	}
	if len(bars.XYs) == 0 {
		return nil
	}
	line, marks, err := plotter.NewLinePoints(bars.XYs)
	if err != nil {
		return err
	}
	line.Color, line.Width = colour, vg.Points(1.2)
	marks.Color, marks.Shape, marks.Radius = colour, shape, vg.Points(2.5)
	g.Add(line, marks)
	g.Legend.Add(c.Name, line, marks)
	if bars.YErrors == nil {
		return nil
	}
	whiskers, err := plotter.NewYErrorBars(bars)
	if err != nil {
		return err
	}
	whiskers.Color = colour
	g.Add(whiskers)
	return nil
}

type errorBars struct {
	plotter.XYs
	plotter.YErrors
}

package experiments

import "fmt"

// Figure is the paper's figure 8 or 9 for the points of one experiment, mode and loading: its four measures in its
// units.
func Figure(points []Point) *Picture {
	s := points[0].Setting
	pic := &Picture{Columns: 2}
	for _, m := range Measures {
		panel := Panel{Title: fmt.Sprintf("%s (%s)", m.Name, m.Unit), Y: m.Unit, X: "nodes"}
		if s.Experiment == 2 {
			panel.X = "timeout (T)"
		}
		for _, place := range []Place{LAN, WAN} {
			c := Curve{Name: place.String()}
			for i := range points {
				if p := &points[i]; p.Place == place {
					mean, deviation := p.Mean(m)
					c.X, c.Y, c.Deviations = append(c.X, p.X()), append(c.Y, mean), append(c.Deviations, deviation)
				}
			}
			panel.Curves = append(panel.Curves, c)
		}
		pic.Panels = append(pic.Panels, panel)
	}
	return pic
}

// FigureName is the name of a figure's files, without what says their format.
func FigureName(s Setting) string {
	return fmt.Sprintf("experiment%d-%v-%v", s.Experiment, s.Mode, s.Loading)
}

// InFigures are the points by figure, in order.
func InFigures(points []Point) (all [][]Point) {
	for i, p := range points {
		if i == 0 || FigureName(p.Setting) != FigureName(points[i-1].Setting) {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], p)
	}
	return all
}

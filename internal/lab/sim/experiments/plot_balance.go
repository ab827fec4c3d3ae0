package experiments

import "strings"

// Pictures are the paper's figures 2 to 8, and what samples are worth.
func (b *Balance) Pictures(r *BalanceResult) []Named {
	return []Named{b.factorPicture(r), b.splitPicture(r), swarmPicture(r), b.curvePicture(r)}
}

func (b *Balance) factorPicture(r *BalanceResult) Named {
	pic := Named{"factors", "Time of a piece, in seconds, by what the machine has", Picture{Columns: 1}}
	for i := range b.Factors {
		f := &b.Factors[i]
		panel := Panel{Title: f.Name, X: strings.TrimSpace(f.Name + " " + f.Unit)}
		for _, p := range b.Programs {
			truth, predicted := Curve{Name: p.Name}, Curve{Name: p.Name + ", predicted"}
			for k := range r.Factors {
				if row := &r.Factors[k]; row.Program == p.Name && row.Factor == i {
					mean, _ := row.Mean()
					truth.X, truth.Y = append(truth.X, row.Value), append(truth.Y, mean)
					predicted.X, predicted.Y = append(predicted.X, row.Value), append(predicted.Y, row.Predicted)
				}
			}
			panel.Curves = append(panel.Curves, truth, predicted)
		}
		pic.Panels = append(pic.Panels, panel)
	}
	return pic
}

func (b *Balance) splitPicture(r *BalanceResult) Named {
	pic := Named{"splits", "Time of each node, in seconds, by the split of 500 URLs", Picture{Columns: 1}}
	for _, p := range b.Programs {
		panel := Panel{Title: "program " + p.Name, X: "node"}
		for i := range r.Splits {
			s := &r.Splits[i]
			if s.Program != p.Name {
				continue
			}
			c := Curve{Name: s.Way}
			for node := range s.Counts {
				c.X, c.Y = append(c.X, float64(node+1)), append(c.Y, s.Mean(node))
			}
			panel.Curves = append(panel.Curves, c)
		}
		pic.Panels = append(pic.Panels, panel)
	}
	return pic
}

func swarmPicture(r *BalanceResult) Named {
	panel := Panel{Title: "whole run by the shortest, mean", X: "nodes", LogX: true, LogY: true}
	var names []string
	curves := map[string]*Curve{}
	for _, s := range r.Swarm {
		c := curves[s.Way]
		if c == nil {
			c = &Curve{Name: s.Way}
			names, curves[s.Way] = append(names, s.Way), c
		}
		c.X, c.Y = append(c.X, float64(s.Nodes)), append(c.Y, s.Mean)
	}
	for _, name := range names {
		panel.Curves = append(panel.Curves, *curves[name])
	}
	return Named{"swarm", "Splits of random clusters, 100 URLs a node", Picture{Columns: 1, Panels: []Panel{panel}}}
}

func (b *Balance) curvePicture(r *BalanceResult) Named {
	off := Panel{Title: "error of predictions (0.1 is about 10 %)", X: "samples"}
	long := Panel{Title: "whole run by the shortest", X: "samples"}
	cold := Panel{Title: "whole run by the shortest, from a cold start", X: "runs"}
	for _, p := range b.Programs {
		e, h, l, w := Curve{Name: p.Name}, Curve{Name: p.Name + ", held back"}, Curve{Name: p.Name}, Curve{Name: p.Name}
		for _, c := range r.Curve {
			if c.Program != p.Name {
				continue
			}
			x := float64(c.Samples)
			e.X, e.Y = append(e.X, x), append(e.Y, c.Error)
			h.X, h.Y = append(h.X, x), append(h.Y, c.HeldBack)
			l.X, l.Y = append(l.X, x), append(l.Y, c.Longer)
		}
		for _, c := range r.Whole {
			if c.Program == p.Name {
				w.X, w.Y = append(w.X, float64(c.Number)), append(w.Y, c.Longer)
			}
		}
		off.Curves = append(off.Curves, e, h)
		long.Curves, cold.Curves = append(long.Curves, l), append(cold.Curves, w)
	}
	return Named{"curve", "What samples are worth: five nodes, 500 URLs",
		Picture{Columns: 1, Panels: []Panel{off, long, cold}}}
}

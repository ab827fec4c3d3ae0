package experiments

import (
	"math"
	"slices"
	"strings"
	"testing"

	"kumo/internal/view/results"
)

// A made is a measure made up for one place of one experiment: a line with a noise that differs by seed.
type made struct{ first, last float64 }

// madeFigures has the LAN's and the WAN's values of all measures for both experiments.
type madeFigures [3][2][4]made

// asReported are figures of which all that the paper states is true.
func asReported() (f madeFigures) {
	f[1][LAN] = [4]made{speed: {4, 7}, srcuse: {1.4, 1.2}, communicate: {0.01, 0.1}, duplicate: {0.002, 0.003}}
	f[1][WAN] = [4]made{speed: {4, 9}, srcuse: {1.2, 1.4}, communicate: {0.01, 0.05}, duplicate: {0.005, 0.02}}
	f[2][LAN] = [4]made{speed: {5, 4}, srcuse: {1.5, 1.2}, communicate: {0.05, 0.01}, duplicate: {0.002, 0.003}}
	f[2][WAN] = [4]made{speed: {5, 4.5}, srcuse: {1.5, 1.4}, communicate: {0.02, 0.01}, duplicate: {0.003, 0.006}}
	return f
}

func (f *madeFigures) points() (points []Point) {
	d := DSpiderOfPaper()
	for _, s := range d.Settings() {
		if s.Mode != AsPaper || s.Loading != OneByOne {
			continue
		}
		p := Point{Setting: s}
		for seed := range 5 {
			at := (s.X() - 3) / 4
			value := func(m int) float64 {
				v := f[s.Experiment][s.Network][m]
				return (v.first + at*(v.last-v.first)) * (1 + 0.002*float64((seed*3+int(s.X()))%5-2))
			}
			p.Runs = append(p.Runs, Figures{Speed: value(speed), Srcuse: value(srcuse), Communicate: value(communicate),
				Duplicate: value(duplicate)})
		}
		points = append(points, p)
	}
	return points
}

func unseen(all []results.Statement) (texts []string) {
	for _, s := range all {
		if !s.Seen {
			texts = append(texts, s.Statement)
		}
		if s.Seen != (s.Why == "") || s.Measured == "" {
			texts = append(texts, "a reason where there should be none, or none: "+s.Statement)
		}
	}
	return texts
}

// TestJudge: figures as the paper reports them are seen; each statement is not where its figures go another way, and
// only that.
func TestJudge(t *testing.T) {
	f := asReported()
	if all := Judge(f.points()); len(all) != 15 || unseen(all) != nil {
		t.Fatalf("%d statements; not seen: %q", len(all), unseen(all))
	}
	for _, c := range []struct {
		experiment int
		place      NetworkKind
		measure    int
		values     made
		want       []string
	}{
		{1, WAN, duplicate, made{0.008, 0.010}, []string{"duplicate grows fast with nodes in the WAN"}},
		{1, WAN, duplicate, made{0.002, 0.005}, []string{"duplicate is far above the LAN's in the WAN"}},
		{1, LAN, duplicate, made{0, 0}, []string{"duplicate is far above the LAN's in the WAN"}},
		{1, LAN, speed, made{4, 4}, []string{"speed rises with nodes in the LAN"}},
		{1, LAN, speed, made{4, 10}, []string{"speed rises more steeply in the WAN than in the LAN"}},
		{1, LAN, speed, made{4, 9}, []string{"speed rises more steeply in the WAN than in the LAN"}},
		{1, WAN, speed, made{9, 4}, []string{"speed rises with nodes in the WAN",
			"speed rises more steeply in the WAN than in the LAN"}},
		{1, LAN, srcuse, made{1.4, 1.4}, []string{"srcuse falls slightly with nodes in the LAN"}},
		{1, LAN, srcuse, made{1.4, 1.5}, []string{"srcuse falls slightly with nodes in the LAN"}},
		{1, LAN, srcuse, made{1.4, 0.7}, []string{"srcuse falls slightly with nodes in the LAN"}},
		{1, WAN, srcuse, made{1.4, 1.3}, []string{"srcuse rises slightly with nodes in the WAN"}},
		{1, WAN, srcuse, made{1.4, 1.405}, []string{"srcuse rises slightly with nodes in the WAN"}},
		{1, WAN, srcuse, made{1.4, 2.4}, []string{"srcuse rises slightly with nodes in the WAN"}},
		{2, WAN, duplicate, made{0.001, 0.002}, []string{"duplicate is mostly above the LAN's in the WAN"}},
		{2, LAN, srcuse, made{1.5, 0.9}, []string{"srcuse falls slightly with the timeout in the LAN"}},
		{2, WAN, srcuse, made{1.4, 1.5}, []string{"srcuse falls slightly with the timeout in the WAN"}},
		{2, LAN, speed, made{5, 2}, []string{"speed falls slightly with the timeout in the LAN"}},
		{2, WAN, speed, made{5, 5.5}, []string{"speed falls slightly with the timeout in the WAN"}},
		{2, LAN, communicate, made{0.02, 0.05}, []string{"communicate falls with the timeout in the LAN",
			"communicate falls more steeply in the LAN than in the WAN"}},
		{2, WAN, communicate, made{0.09, 0.01}, []string{"communicate falls more steeply in the LAN than in the WAN"}},
		{2, WAN, communicate, made{0.02, 0.02}, []string{"communicate falls with the timeout in the WAN"}},
	} {
		f := asReported()
		f[c.experiment][c.place][c.measure] = c.values
		if got := unseen(Judge(f.points())); !slices.Equal(got, c.want) {
			t.Errorf("experiment %d, %v, %s %v: not seen %q, want %q", c.experiment, c.place, Measures[c.measure].Name, c.values,
				got, c.want)
		}
	}
}

// TestJudgeSpread: what is within the seeds' spread is no trend.
func TestJudgeSpread(t *testing.T) {
	f := asReported()
	points := f.points()
	for i := range points {
		p := &points[i]
		for seed := range p.Runs {
			if p.Experiment == 1 && p.Network == LAN {
				p.Runs[seed].Srcuse *= 1 + 0.1*float64(seed-2)*(p.X()-5) // rises with some seeds and falls with others
			}
		}
	}
	want := []string{"srcuse falls slightly with nodes in the LAN"}
	all := Judge(points)
	if got := unseen(all); !slices.Equal(got, want) {
		t.Errorf("not seen %q, want %q", got, want)
	}
	for _, s := range all {
		if s.Statement == want[0] && !strings.HasPrefix(s.Why, "it is flat; ") {
			t.Error(s.Why)
		}
	}
}

// TestJudgeFew: an axis with one point has no trend, and is left out.
func TestJudgeFew(t *testing.T) {
	f := asReported()
	points := slices.DeleteFunc(f.points(), func(p Point) bool { return p.Experiment == 2 && p.X() > 3 })
	for _, s := range Judge(points) {
		if strings.HasPrefix(s.Of, "experiment 2") {
			t.Errorf("%+v", s)
		}
	}
}

func TestSlope(t *testing.T) {
	for _, c := range []struct {
		xs, ys []float64
		want   float64
	}{
		{[]float64{1, 2, 3}, []float64{5, 7, 9}, 2},
		{[]float64{1, 2, 3}, []float64{1, 0, 1}, 0},
		{[]float64{2, 2}, []float64{1, 9}, 0},
	} {
		if got := slopeOf(c.xs, c.ys); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v, %v: %v", c.xs, c.ys, got)
		}
	}
}

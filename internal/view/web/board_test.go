package web

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	seriesName  = regexp.MustCompile(`\b(?:kumo|process|go)_[a-z_]+`)
	seriesLabel = regexp.MustCompile(`by \(([a-z]+)\)`)
)

// The Grafana dashboard in packaging uses only existing series and labels, and all of kumo's own series.
func TestBoard(t *testing.T) {
	text, err := os.ReadFile("../../../packaging/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Templating struct{ List []struct{ Query string } }
		Panels     []struct {
			Title, Description string
			GridPos            struct{ X, Y, W, H int }
			Targets            []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	handler(everything()).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	metrics := w.Body.String()
	named := map[string]bool{}
	check := func(title, expr string) {
		names := seriesName.FindAllString(expr, -1)
		if len(names) == 0 {
			t.Errorf("%s: %s names no series", title, expr)
		}
		for _, name := range names {
			named[name] = true
			if !strings.Contains(metrics, "\n# TYPE "+name+" ") {
				t.Errorf("%s: there is no series %s", title, name)
			}
			for _, label := range seriesLabel.FindAllStringSubmatch(expr, -1) {
				if label[1] != "instance" && !regexp.MustCompile(`(?m)^`+name+`\{[^}]*\b`+label[1]+`=`).MatchString(metrics) {
					t.Errorf("%s: %s has no label %s", title, name, label[1])
				}
			}
		}
	}
	for _, v := range board.Templating.List {
		if v.Query != "prometheus" {
			check("a variable", v.Query)
		}
	}
	taken := map[[2]int]string{}
	for _, p := range board.Panels {
		if p.Title == "" || p.Description == "" || len(p.Targets) == 0 {
			t.Errorf("panel %q has no title, description or target", p.Title)
		}
		for _, target := range p.Targets {
			check(p.Title, target.Expr)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s lies over %q or beyond the border", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
	// a graph of these would add nothing to others
	left := []string{"kumo_failures_total", "kumo_outage_seconds_total", "kumo_queue_growth_per_second",
		"kumo_place_files", "kumo_disk_free_bytes", "kumo_disk_min_free_bytes", "kumo_lease_seconds",
		"kumo_lease_expirations_total", "kumo_declared_dead_total",
		"kumo_place_bytes", "kumo_place_bytes_waiting", "kumo_place_checkpoints", "kumo_place_journal_cut_bytes",
		"kumo_place_journal_kept_bytes", "kumo_place_files_lacking"}
	for _, line := range regexp.MustCompile(`(?m)^# TYPE (kumo_\S+)`).FindAllStringSubmatch(metrics, -1) {
		if name := line[1]; !named[name] && !slices.Contains(left, name) {
			t.Errorf("%s is on no panel", name)
		}
	}
}

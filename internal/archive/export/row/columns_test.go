package row

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"kumo/internal/archive/export/captures"
	"kumo/internal/base/page"
)

// TestColumns tests that each column of a row has its value, and that those of a visit are unknown without one.
func TestColumns(t *testing.T) {
	full := Row{URL: "http://a.test/", Depth: 2, Visit: &captures.Visit{From: "http://a.test/from", TotalMS: 7,
		ServerIP: netip.MustParseAddr("192.0.2.1"), Usage: &page.Usage{Uses: page.Uses{TrainAI: "n"}, Source: "header"}}}
	want := map[string]any{"url": "http://a.test/", "depth": int64(2), "from": "http://a.test/from", "total_ms": int64(7),
		"server_ip": "192.0.2.1", "noindex": false, "usage.train_ai": "n", "usage.search": "", "usage.source": "header"}
	for _, c := range Columns() {
		v, known := c.Value(&full)
		if w, is := want[c.Name]; is && (!known || v != w) {
			t.Errorf("%s is %v, %v, want %v", c.Name, v, known, w)
		}
		delete(want, c.Name)
		if known && reflect.TypeOf(v) != reflect.TypeOf(c.Zero()) {
			t.Errorf("%s is a %T, and a %T where it is not known", c.Name, v, c.Zero())
		}
		if _, known := c.Value(&Row{Visit: &captures.Visit{}}); known && strings.HasPrefix(c.Name, "usage.") {
			t.Errorf("%s has a value for a page without usage preferences", c.Name)
		}
		if _, known := c.Value(&Row{Depth: -1}); known && (len(c.index) > 1 || c.Name == "depth") {
			t.Errorf("%s is known without a visit", c.Name)
		}
	}
	if len(want) > 0 {
		t.Errorf("there are no columns %v", want)
	}
}

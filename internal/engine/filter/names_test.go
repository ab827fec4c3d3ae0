package filter

import (
	"slices"
	"strings"
	"testing"

	"kumo/internal/base/stats"
)

// Filters with equal commands, or commands with the same beginning, are counted separately.
func TestFiltersHaveNamesOfTheirOwn(t *testing.T) {
	long := strings.Repeat("x", 2*maxName)
	names := Names([]string{"./f.py", "./g.py", "./f.py", "./f.py #2", "./f.py", long + "1", long + "2"})
	if want := []string{"./f.py", "./g.py", "./f.py #2", "./f.py #2 #2", "./f.py #3"}; !slices.Equal(names[:5], want) {
		t.Errorf("%q, want %q", names[:5], want)
	}
	if names[5] == names[6] {
		t.Errorf("two have the name %q", names[5])
	}
	second := NewAccount(&Config{Command: "./f.py", Name: names[2]})
	second.Resume(stats.FilterCounts{Crashed: 3})
	if c := second.Counts(); c.Filter != "./f.py #2" || c.Crashed != 3 ||
		NewAccount(&Config{Command: "./f.py"}).Name() != "./f.py" {
		t.Errorf("%+v", c)
	}
}

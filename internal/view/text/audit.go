package text

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"kumo/internal/archive/audit"
	"kumo/internal/base/stats"
)

// maxProblems is the number of kinds of problems that the summary names for a table.
const maxProblems = 5

// Audit prints the summary of an audit: a line for each table, with its file below dir if there is one.
func Audit(w io.Writer, s *audit.Summary, dir string) error {
	fmt.Fprintf(w, "%s, of which %s\n\n", stats.Count(s.URLs, "URLs with a response"),
		stats.Count(s.Pages, "HTML pages with status 200"))
	for i := range s.Tables {
		t := &s.Tables[i]
		if audit.Tables[i].List {
			continue
		}
		line := fmt.Sprintf("%9s  %-36s %s", stats.Grouped(t.Rows), t.Title, problems(t))
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
	if dir == "" {
		_, err := fmt.Fprintln(w, "\n--out DIR writes these tables as CSV files")
		return err
	}
	_, err := fmt.Fprintf(w, "\neach table is a file: %s, ...\n", filepath.Join(dir, audit.Tables[0].File()))
	return err
}

// problems returns the most frequent kinds of problems in a table, if there are several.
func problems(t *audit.TableSummary) string {
	kinds := slices.SortedFunc(maps.Keys(t.Problems), func(a, b string) int {
		return cmp.Or(cmp.Compare(t.Problems[b], t.Problems[a]), cmp.Compare(a, b))
	})
	if len(kinds) == 0 || len(kinds) == 1 && strings.Contains(t.Title, kinds[0]) {
		return ""
	}
	var parts []string
	rest := t.Rows
	for _, kind := range kinds[:min(len(kinds), maxProblems)] {
		parts = append(parts, stats.Grouped(t.Problems[kind])+" "+kind)
		rest -= t.Problems[kind]
	}
	if rest > 0 {
		parts = append(parts, stats.Grouped(rest)+" others")
	}
	return strings.Join(parts, ", ")
}

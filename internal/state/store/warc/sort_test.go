package warc

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"kumo/internal/base/vfs"
)

// TestSortLines sorts more than fits into memory, with lines longer than any buffer, and checks that no other file
// remains.
func TestSortLines(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 0))
	for _, n := range []int{0, 1, 2, 500} {
		dir := t.TempDir()
		from, to := filepath.Join(dir, "in"), filepath.Join(dir, "out.cdxj")
		lines := make([]string, n)
		for i := range lines {
			lines[i] = fmt.Sprintf("%d %s\n", rnd.IntN(1000), strings.Repeat("x", rnd.IntN(100)))
		}
		if n > 2 {
			lines[rnd.IntN(n)] = strings.Repeat("5", 200_000) + "\n"
		}
		write(t, from, strings.Join(lines, ""))
		write(t, to+".run0.tmp", "left by a crash\n")
		if err := sortLines(vfs.OS, from, to, 4000); err != nil {
			t.Fatal(err)
		}
		slices.Sort(lines)
		if got := read(t, to); got != strings.Join(lines, "") {
			t.Errorf("seed %d: %d lines are not sorted", seed, n)
		}
		if names, _ := vfs.OS.List(dir); len(names) != 2 {
			t.Errorf("left behind: %v", names)
		}
	}
}

func TestMergeInGroups(t *testing.T) {
	dir := t.TempDir()
	var from, want []string
	for i := range 20 {
		name := filepath.Join(dir, fmt.Sprint(i))
		text := ""
		for j := range i { // the first is empty
			line := fmt.Sprintf("%02d %02d\n", j, i)
			want = append(want, line)
			text += line
		}
		write(t, name, text)
		from = append(from, name)
	}
	slices.Sort(want)
	for _, fanIn := range []int{2, 3, 19, 20, 100} {
		to := filepath.Join(dir, "index.cdxj")
		if err := mergeLines(vfs.OS, from, to, fanIn); err != nil {
			t.Fatal(err)
		}
		if read(t, to) != strings.Join(want, "") {
			t.Errorf("wrong with %d at once", fanIn)
		}
		if names, _ := vfs.OS.List(dir); len(names) != len(from)+1 {
			t.Errorf("with %d at once, left behind: %v", fanIn, names)
		}
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

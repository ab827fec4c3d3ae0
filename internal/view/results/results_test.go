package results_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"kumo/internal/view/results"
)

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(dir, 0o777), os.WriteFile(filepath.Join(dir, name), []byte(text),
		0o600)); err != nil {
		t.Fatal(err)
	}
}

// Results are read from a folder and from its subfolders; a table is read in parts.
func TestExperimentsInFolders(t *testing.T) {
	dir := t.TempDir()
	e := &results.Experiment{Experiment: "rank", Command: "kumo sim rank",
		Statements: []results.Statement{{Statement: "<more>", Measured: "2"}},
		Tables:     []string{"t.csv"}, Pictures: []results.Picture{{File: "p.svg"}}}
	for _, name := range []string{"b", "a"} {
		write(t, filepath.Join(dir, name), "t.csv", "x,\"y\nz\"\n1,\"a\nb\"\n2,c\n3,\n")
		if err := e.Write(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "none"), "t.csv", "")
	found, err := results.Find(dir)
	a := filepath.Join(dir, "a")
	if err != nil || !slices.Equal(found, []string{a, filepath.Join(dir, "b")}) {
		t.Fatalf("%q, %v", found, err)
	}
	if found, err := results.Find(a); err != nil || !slices.Equal(found, []string{a}) {
		t.Errorf("%q, %v", found, err)
	}
	if got, err := results.Read(a); err != nil || !reflect.DeepEqual(got, e) {
		t.Errorf("%+v, %v", got, err)
	}
	var rows [][]string
	for from := int64(0); ; {
		part, err := results.Table(a, "t.csv", from, 1)
		if err != nil || !slices.Equal(part.Columns, []string{"x", "y\nz"}) {
			t.Fatalf("%+v, %v", part, err)
		}
		rows = append(rows, part.Rows...)
		if from = part.Next; from == 0 {
			break
		}
	}
	if want := [][]string{{"1", "a\nb"}, {"2", "c"}, {"3", ""}}; !reflect.DeepEqual(rows, want) {
		t.Errorf("%q", rows)
	}
	for _, from := range []int64{1, 3, 1 << 40} {
		if _, err := results.Table(a, "t.csv", from, 1); !errors.Is(err, results.ErrCursor) {
			t.Errorf("from %d on: %v", from, err)
		}
	}
}

// No name leads out of a folder, and files that are too large or damaged are errors.
func TestWhatIsNotRead(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "in")
	write(t, dir, "secret.svg", "secret")
	write(t, in, "own.svg", "own")
	if err := errors.Join(os.Symlink("../secret.svg", filepath.Join(in, "link.svg")),
		os.Mkdir(filepath.Join(in, "dir.svg"), 0o777)); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{"link.svg", "../secret.svg", "in/own.svg", "dir.svg", "", ".", "..", ".hidden",
		`..\secret.svg`, "none.svg"} {
		if data, err := results.ReadFile(in, name, 100); err == nil {
			t.Errorf("%q is read: %q", name, data)
		}
	}
	if data, err := results.ReadFile(in, "own.svg", 3); err != nil || string(data) != "own" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := results.ReadFile(in, "own.svg", 2); err == nil {
		t.Error("a file that is too large is read")
	}
	if _, err := results.Read(in); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder without an experiment: %v", err)
	}
	for _, text := range []string{"{", `{"tables":[` + strings.Repeat(`"x",`, 500) + `"x"]}`, strings.Repeat(" ", 5<<20) +
		"{}"} {
		write(t, in, results.Name, text)
		if e, err := results.Read(in); err == nil {
			t.Errorf("%.20q… is read: %+v", text, e)
		}
	}
}

func FuzzTable(f *testing.F) {
	f.Add("a,b\n1,2\n\"3\n\",4\n", int64(4))
	f.Fuzz(func(t *testing.T, text string, from int64) {
		dir := t.TempDir()
		write(t, dir, "t.csv", text)
		if part, err := results.Table(dir, "t.csv", from, 3); err == nil &&
			(len(part.Rows) > 3 || part.Next > int64(len(text))) {
			t.Errorf("%q from %d on: %+v", text, from, part)
		}
	})
}

// A row of a large table that ends after the bytes of one read is neither truncated nor lost.
func TestALargeTable(t *testing.T) {
	dir, row := t.TempDir(), strings.Repeat("x", 1<<20)+",\"a\nb\"\n"
	const n = 20
	write(t, dir, "t.csv", "c,d\n"+strings.Repeat(row, n))
	rows, parts := 0, 0
	for from := int64(0); ; parts++ {
		part, err := results.Table(dir, "t.csv", from, n)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range part.Rows {
			if len(r) != 2 || len(r[0]) != 1<<20 || r[1] != "a\nb" {
				t.Errorf("a row of %d cells, the first with %d bytes", len(r), len(r[0]))
			}
		}
		rows += len(part.Rows)
		if from = part.Next; from == 0 {
			break
		}
	}
	if rows != n || parts < 2 {
		t.Errorf("%d rows in %d parts", rows, parts+1)
	}
	write(t, dir, "t.csv", "c\n"+strings.Repeat("x", 9<<20)+"\n")
	if part, err := results.Table(dir, "t.csv", 0, 1); err == nil {
		t.Errorf("half a row is given: %d rows", len(part.Rows))
	}
}

package kumo_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestFloors holds the table of floors in ARCHITECTURE.md against the code: every room is in it, and imports only rooms
// on floors below its own.
func TestFloors(t *testing.T) {
	floors := readFloors(t)
	roomOf := func(dir string) string {
		for dir != "." {
			if _, is := floors[dir]; is {
				return dir
			}
			dir = path.Dir(dir)
		}
		return dir
	}
	met := map[string]bool{".": true, "cmd/kumo": true}
	for dir, imports := range readImports(t) {
		room := roomOf(dir)
		if met[room] = true; room == "." && dir != "." {
			t.Errorf("%s is on no floor", dir)
		}
		for _, imported := range imports {
			if below := roomOf(imported); below != room && floors[below] >= floors[room] {
				t.Errorf("%s, on floor %d, imports %s, on floor %d", dir, floors[room], imported, floors[below])
			}
		}
	}
	for room := range floors {
		if !met[room] {
			t.Errorf("the table has %s, the code does not", room)
		}
	}
}

// readFloors reads the table: names of rooms, a number, and what they are. What stands in braces are members of a
// family, on its floor; what begins with + is only planned.
func readFloors(t *testing.T) map[string]int {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Floors")
	_, table, _ = strings.Cut(table, "```\n")
	table, _, _ = strings.Cut(table, "```")
	row, braces := regexp.MustCompile(`^ *(\S.*?) {2,}(\d+) `), regexp.MustCompile(`\{.*?\}`)
	floors := map[string]int{}
	for line := range strings.Lines(table) {
		m := row.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		for _, name := range strings.Fields(braces.ReplaceAllString(m[1], "")) {
			switch name = strings.TrimRight(name, "/,"); {
			case strings.HasPrefix(name, "+") || name == "doc.go":
			case name == "kumo.go":
				floors["."], _ = strconv.Atoi(m[2])
			case strings.HasPrefix(name, "cmd"):
				floors[name], _ = strconv.Atoi(m[2])
			default:
				floors["internal/"+name], _ = strconv.Atoi(m[2])
			}
		}
	}
	if len(floors) < 40 {
		t.Fatalf("the table has %d rooms", len(floors))
	}
	return floors
}

// readImports finds what each package imports of the others, without its tests.
func readImports(t *testing.T) map[string][]string {
	all := map[string][]string{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || name != "." && d.Name()[0] == '.' || isModule(name)):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(name))
		all[dir] = append(all[dir], nil...) // which may import nothing of the house
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if rest, ours := strings.CutPrefix(imported, "kumo/"); ours {
				all[dir] = append(all[dir], rest)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// isModule reports whether a folder below this one is a module of its own.
func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil && dir != "."
}

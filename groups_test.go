package kumo_test

import (
	"flag"
	"fmt"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the lists of packages into the README.md of each group")

// TestGroups tests that packages import only packages of their own group and of those before it in ARCHITECTURE.md,
// and that the README.md of each group lists its packages with the first sentences of their comments. Tests may import
// the last group, lab, too.
func TestGroups(t *testing.T) {
	groups := readGroups(t)
	lab := len(groups) - 1
	lists := make([]strings.Builder, len(groups))
	packages := readPackages(t)
	for _, p := range packages {
		g := slices.Index(groups, groupOf(p.dir))
		if g < 0 {
			if strings.HasPrefix(p.dir, "internal/") {
				t.Errorf("%s is in no group", p.dir)
			}
			continue
		}
		fmt.Fprintf(&lists[g], "| `%s` | %s |\n", strings.TrimPrefix(p.dir, "internal/"+groups[g]+"/"),
			strings.ReplaceAll(p.synopsis, "|", `\|`))
		for _, imported := range p.imports {
			if of := slices.Index(groups, groupOf(imported)); of > g {
				t.Errorf("%s imports %s: group %s comes before %s", p.dir, imported, groups[g], groups[of])
			}
		}
		for _, imported := range p.testImports {
			of := slices.Index(groups, groupOf(imported))
			if of > g && of != lab && !slices.Contains(testsAbove, p.dir+" "+imported) {
				t.Errorf("the tests of %s import %s: group %s comes before %s", p.dir, imported, groups[g], groups[of])
			}
		}
	}
	for g, name := range groups {
		checkList(t, filepath.Join("internal", name, "README.md"), lists[g].String())
	}
}

// testsAbove are packages whose tests need a package of a later group.
var testsAbove = []string{
	"internal/content/fetch internal/state/store/warc", // whether the exact bytes of an answer make a WARC record
	"internal/engine/crawl internal/app/meshnode",      // engines whose links real mesh nodes route
}

// groupOf returns the group of a package below internal.
func groupOf(dir string) string {
	below, is := strings.CutPrefix(dir, "internal/")
	if !is {
		return ""
	}
	group, _, _ := strings.Cut(below, "/")
	return group
}

// readGroups returns the names of the groups in the table of ARCHITECTURE.md.
func readGroups(t *testing.T) (groups []string) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n## Groups")
	table, _, _ = strings.Cut(table, "\n## ")
	for _, row := range regexp.MustCompile("(?m)^\\| \\[`(\\w+)`\\]").FindAllStringSubmatch(table, -1) {
		groups = append(groups, row[1])
	}
	if len(groups) != 10 {
		t.Fatalf("ARCHITECTURE.md has the groups %v", groups)
	}
	return groups
}

// checkList compares a list of packages with the one in a README.md, or writes it there.
func checkList(t *testing.T, name, list string) {
	text, err := os.ReadFile(name)
	if err != nil {
		t.Error(err)
		return
	}
	head, _, _ := strings.Cut(string(text), "| package |")
	want := head + "| package | |\n| --- | --- |\n" + list
	if string(text) == want {
		return
	}
	if !*update {
		t.Errorf("%s does not list the group's packages with their comments: go test -run TestGroups -update .", name)
		return
	}
	if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
		t.Error(err)
	}
}

type groupedPackage struct {
	dir, synopsis        string
	imports, testImports []string // of this module, without its name
}

// readPackages returns all packages of the module, sorted by directory.
func readPackages(t *testing.T) []*groupedPackage {
	all := map[string]*groupedPackage{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || name != "." && d.Name()[0] == '.' || isModule(name)):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		dir := path.Dir(filepath.ToSlash(name))
		p := all[dir]
		if p == nil {
			p = &groupedPackage{dir: dir}
			all[dir] = p
		}
		isTest := strings.HasSuffix(name, "_test.go")
		if file.Doc != nil && !isTest {
			p.synopsis = new(doc.Package).Synopsis(file.Doc.Text())
		}
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if rest, ours := strings.CutPrefix(imported, "kumo/"); ours && isTest {
				p.testImports = append(p.testImports, rest)
			} else if ours {
				p.imports = append(p.imports, rest)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var sorted []*groupedPackage
	for _, p := range all {
		sorted = append(sorted, p)
	}
	slices.SortFunc(sorted, func(a, b *groupedPackage) int { return strings.Compare(a.dir, b.dir) })
	return sorted
}

// isModule reports whether a folder below this one is a module of its own.
func isModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil && dir != "."
}

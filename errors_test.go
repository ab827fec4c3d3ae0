package kumo

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"kumo/internal/app/setting"
	"kumo/internal/base/advice"
)

// elsewhere are flags of other commands than kumo crawl that texts may name, and words that look like flags.
var elsewhere = []string{"crawl", "dry-run", "config", "json"}

// The packages behind the library may name a flag in a text only where a programmer can tell which option is meant.
func TestErrorsSpeakOfOptions(t *testing.T) {
	for dir, files := range houseFiles(t) {
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				lit, is := n.(*ast.BasicLit)
				if !is || lit.Kind != token.STRING {
					return true
				}
				text, _ := strconv.Unquote(lit.Value)
				for _, found := range aFlag.FindAllStringSubmatch(text, -1) {
					if flag := found[2]; setting.Find(flag) == nil && !slices.Contains(elsewhere, flag) {
						t.Errorf("%s/%s: --%s is no setting", dir, name, flag)
					}
				}
				return true
			})
		}
	}
}

// houseFiles returns the module's files that a program links with the library, by folder.
func houseFiles(t *testing.T) map[string][]string {
	cmd := exec.Command("go", "list", "-deps", "-f",
		`{{if .Module}}{{if .Module.Main}}{{.Dir}}{{range .GoFiles}} {{.}}{{end}}{{end}}{{end}}`, ".")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) > 0 {
			all[f[0]] = f[1:]
		}
	}
	if len(all) < 40 {
		t.Fatalf("the library is made of %d packages", len(all))
	}
	return all
}

func TestWordsOfOptions(t *testing.T) {
	for text, want := range map[string]string{
		"private address, not visited without --allow-private": "private address, not visited without kumo.AllowPrivate",
		"give them with --user and --password":                 "give them with kumo.BasicAuth and kumo.BasicAuth",
		"begin again with --fresh, or elsewhere":               "begin again with kumo crawl --fresh, or elsewhere",
		"kumo node --crawl x goes on":                          "kumo node --crawl x goes on",
		"well-known -- and plain":                              "well-known -- and plain",
	} {
		if got := optionsOf(text); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	cause := errors.New("x --out y")
	if err := toOptionError(advice.With(cause, "raise --memory")); !errors.Is(err, cause) ||
		err.Error() != "x kumo.Out y: raise kumo.Memory" {
		t.Error(err)
	}
	if plain := errors.New("plain"); !errors.Is(plain, toOptionError(plain)) {
		t.Error("an error without flags was changed")
	}
}

package fields

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write what is found into testdata")

// TestRules applies rules to the pages in testdata. Each file has rules.yaml, pages (with a name ending in .html or
// .xml; the first line of the comment before them is ignored) and want, the expected result of each.
func TestRules(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no files", err)
	}
	for _, name := range files {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			ar, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var rules *Rules
			var got bytes.Buffer
			for i, f := range ar.Files {
				switch {
				case f.Name == "rules.yaml":
					if rules, err = Parse(f.Name, f.Data); err != nil {
						fmt.Fprintln(&got, err)
					}
				case f.Name == "want":
					if *update {
						ar.Files[i].Data = bytes.Clone(got.Bytes())
						if err := os.WriteFile(name, txtar.Format(ar), 0o644); err != nil {
							t.Fatal(err)
						}
						return
					}
					if got.String() != string(f.Data) {
						t.Errorf("got\n%s\nwant\n%s", got.String(), f.Data)
					}
				case rules != nil:
					show(&got, rules, f)
				}
			}
		})
	}
}

func show(w *bytes.Buffer, rules *Rules, f txtar.File) {
	p := Page{URL: "https://shop.example/" + f.Name, Text: string(f.Data), XML: strings.HasSuffix(f.Name, ".xml")}
	res := rules.NewReader().Read(p, true)
	fmt.Fprintln(w, f.Name)
	for _, r := range res.Records {
		fmt.Fprintf(w, "  %s %s\n", r.Rule, r.Values)
	}
	for _, r := range res.Rules {
		for _, f := range r.Fields {
			if f.Why != "" {
				fmt.Fprintf(w, "  %s.%s: found %d, missed %d: %s\n", r.Rule, f.Path, f.Found, f.Missed, f.Why)
			}
		}
	}
}

package kumo_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The code in the documentation compiles: whole programs as they are, declarations in a file, statements in a function
// that has a ctx and a Crawler c.
func TestDocumentationCompiles(t *testing.T) {
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	tmp, overlay := t.TempDir(), map[string]string{}
	var packages []string
	for _, name := range []string{"README.md", "docs/reference/library.md", "docs/tutorials/first-program.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, block := range codeBlock.FindAllStringSubmatch(string(text), -1) {
			dir := fmt.Sprintf("snippet%d_%s", i, strings.NewReplacer("/", "_", ".", "_").Replace(name))
			file := filepath.Join(tmp, dir+".go")
			if err := os.WriteFile(file, []byte(asFile(block[1])), 0o666); err != nil {
				t.Fatal(err)
			}
			overlay[filepath.Join(root, dir, "main.go")] = file
			packages = append(packages, "./"+dir)
		}
	}
	if len(overlay) < 6 {
		t.Fatalf("the documentation has %d blocks of code", len(overlay))
	}
	list, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tmp, "overlay.json"), list, 0o666); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"build", "-o", os.DevNull, "-overlay", filepath.Join(tmp, "overlay.json")}, packages...)
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		t.Errorf("%v:\n%s", err, out)
	}
}

var (
	codeBlock = regexp.MustCompile("(?s)\n```go\n(.*?)```\n")
	pkgName   = regexp.MustCompile(`\b([a-z]+)\.[A-Z]`)
	imported  = map[string]string{"kumo": "kumo", "context": "context", "fmt": "fmt", "log": "log",
		"html": "golang.org/x/net/html",
		"json": "encoding/json", "os": "os", "strings": "strings", "sync": "sync", "http": "net/http", "errors": "errors",
		"regexp": "regexp", "render": "kumo/render",
		"time": "time", "tls": "crypto/tls"}
)

// asFile makes a file of a piece of code.
func asFile(code string) string {
	if strings.HasPrefix(code, "package ") {
		return code
	}
	if !strings.HasPrefix(code, "type ") && !strings.HasPrefix(code, "func ") {
		begin := "func _(ctx context.Context, c *kumo.Crawler) {\n_ = ctx\n{\n"
		if strings.Contains(code, "c := ") {
			begin = "func _(ctx context.Context) {\n{\n"
		}
		code = begin + code + "}\n}\n"
	}
	head := "package snippet\n\n"
	for _, m := range pkgName.FindAllStringSubmatch(code, -1) {
		if path := imported[m[1]]; path != "" && !strings.Contains(head, `"`+path+`"`) {
			head += fmt.Sprintf("import %q\n", path)
		}
	}
	return head + "\n" + code
}

//go:build ignore

// Links writes the links that kumo finds in HTML files, for .ci/links to compare: for each file named by a line of the
// standard input a line of JSON, {"file": ..., "links": ["kind url", ...]}. The pages are taken to lie at
// http://h.test/.
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"net/http"
	"os"

	"kumo/internal/base/page"
	"kumo/internal/content/parse"
)

func main() {
	out := bufio.NewWriter(os.Stdout)
	lines := json.NewEncoder(out)
	lines.SetEscapeHTML(false)
	parser := parse.New(parse.Config{MaxLinks: 1 << 20})
	var pg page.Page
	for names := bufio.NewScanner(os.Stdin); names.Scan(); {
		body, err := os.ReadFile(names.Text())
		if err != nil {
			log.Fatal(err)
		}
		resp := &page.Response{URL: "http://h.test/d/page.html", Status: 200, Body: body,
			Header: http.Header{"Content-Type": {"text/html"}}}
		if err := parser.Parse(resp, &pg); err != nil {
			log.Fatal(err)
		}
		links := make([]string, 0, len(pg.Links))
		for _, l := range pg.Links {
			links = append(links, l.Kind.String()+" "+l.URL)
		}
		if err := lines.Encode(map[string]any{"file": names.Text(), "links": links}); err != nil {
			log.Fatal(err)
		}
	}
	if err := out.Flush(); err != nil {
		log.Fatal(err)
	}
}

package documents_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"kumo"
	"kumo/documents"
	"kumo/internal/lab/files"
)

// serve serves a page with a link to a Word file, which leads to another page.
func serve() *httptest.Server {
	report := files.DOCX(files.Content{Title: "Annual report", Author: "N. N.", Heading: "The year",
		Paragraphs: []string{"Sales rose.", "More is on another page."}, Link: "/more.html"})
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/":
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte(`<title>Home</title><a href="/report.docx">Report</a>`))
		case "/report.docx":
			w.Header().Set("Content-Type", "application/octet-stream")
			_, _ = w.Write(report)
		case "/more.html":
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte(`<title>More</title>`))
		case "/cut.docx":
			w.Header().Set("Content-Type", "application/octet-stream")
			_, _ = w.Write(report[:len(report)/2])
		default:
			http.NotFound(w, r)
		}
	}))
}

func Example() {
	s := serve()
	defer s.Close()
	c := kumo.New(kumo.Documents(documents.New(documents.Options{})), kumo.Delay(0))
	c.OnPage(func(p *kumo.Page) {
		if p.Document == nil {
			fmt.Println(p.Title)
			return
		}
		fmt.Printf("%s by %s, %s:\n%s\n", p.Title, p.Document.Author, p.Document.Type, p.Text())
	})
	if err := c.Run(context.Background(), s.URL); err != nil {
		panic(err)
	}
	// Output:
	// Home
	// Annual report by N. N., docx:
	// The year
	// Sales rose.
	// More is on another page.
	// More
}

func TestADocumentIsAPage(t *testing.T) {
	s := serve()
	defer s.Close()
	pages := map[string]*kumo.Page{}
	c := kumo.New(kumo.Documents(documents.New(documents.Options{})), kumo.Delay(0), kumo.Concurrency(1))
	c.OnPage(func(p *kumo.Page) { pages[strings.TrimPrefix(p.URL, s.URL)] = p })
	if err := c.Run(t.Context(), s.URL, s.URL+"/cut.docx"); err != nil {
		t.Fatal(err)
	}
	p := pages["/report.docx"]
	if p == nil || p.Document == nil || p.Document.WhyNot != "" || len(p.Links) != 1 || p.Links[0] != s.URL+"/more.html" {
		t.Fatalf("%+v", p)
	}
	if a := p.Article(); a.Headline != "The year" || a.Kind != "document" || a.Lang != "en" {
		t.Errorf("%+v", a)
	}
	for e := range p.Find("article > p > a") {
		if e.Text() != "More is on another page." {
			t.Errorf("%q", e.Text())
		}
	}
	if string(p.Body[:2]) != "PK" || p.Type != "application/octet-stream" || p.Charset != "" {
		t.Errorf("the body is as received, the type as declared: %.10q, %s, %q", p.Body, p.Type, p.Charset)
	}
	if d := pages["/cut.docx"].Document; d == nil || d.WhyNot != "broken" || d.Detail == "" {
		t.Errorf("half a file: %+v", d)
	}
}

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"kumo/internal/base/page"
	"kumo/internal/lab/files"
)

// documentSite serves a page with links to four documents: one is cut, and one is in a format without a reader.
func documentSite(t *testing.T) string {
	t.Helper()
	report := files.DOCX(files.Content{Title: "Annual report", Author: "N. N.", Heading: "The year",
		Paragraphs: []string{"Sales of elephants rose.", "More is on another page."}, Link: "/from-docx.html"})
	served := map[string]struct{ kind, body string }{
		"/": {"text/html", `<title>Home</title><a href="report.docx">1</a><a href="paper.pdf">2</a><a href="half.pdf">3</a>` +
			`<a href="mail.rtf">4</a>`},
		"/report.docx":    {"application/octet-stream", string(report)},
		"/from-docx.html": {"text/html", "<title>From a Word file</title>"},
		"/from-pdf.html":  {"text/html", "<title>From a PDF</title>"},
		"/mail.rtf":       {"application/rtf", `{\rtf1 A letter}`},
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		paper := files.PDF(files.Content{Title: "A paper", Author: "Émile", Heading: "On giraffes",
			Paragraphs: []string{"Giraffes are tall.", "More is on another page."}, Link: "http://" + r.Host + "/from-pdf.html"})
		switch r.URL.Path {
		case "/paper.pdf":
			w.Header().Set("Content-Type", "application/pdf")
			_, _ = w.Write(paper)
			return
		case "/half.pdf":
			w.Header().Set("Content-Type", "application/x-long")
			_, _ = w.Write(append(paper, make([]byte, 4000)...))
			return
		}
		x, found := served[r.URL.Path]
		if !found {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", x.kind)
		_, _ = w.Write([]byte(x.body))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestADocumentCrawl crawls documents by the command, with and without --text, and reads them again from the archive.
func TestADocumentCrawl(t *testing.T) {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" || runtime.GOOS == "windows" {
		t.Skip("PDF files cannot be read here")
	}
	t.Setenv("XDG_CACHE_HOME", filepath.Join(os.TempDir(), "kumo-test-documents")) // compiled once a computer
	site := documentSite(t)
	kumo := func(args ...string) string {
		t.Helper()
		out, err := exec.Command(kumoProgram(t), args...).CombinedOutput()
		if err != nil {
			t.Fatalf("kumo %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	dir := filepath.Join(t.TempDir(), "c")
	report := kumo("crawl", "-o", dir, "--delay", "0", "--text", "--max-body-of", "application/x-long=2KB", site)
	if !strings.Contains(report, "documents 2 read in this run, with 2 pages and 2 links") ||
		!strings.Contains(report, "no text   cut 1, unsupported 1") {
		t.Errorf("the report:\n%s", report)
	}
	type line struct {
		URL, Title, Lang, Text string
		Document               *page.Document
	}
	read := func(dir, name string) map[string]line {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]line{}
		for text := range strings.Lines(string(data)) {
			var l line
			if err := json.Unmarshal([]byte(text), &l); err != nil {
				t.Fatal(err)
			}
			all[strings.TrimPrefix(l.URL, site)] = l
		}
		return all
	}
	pages := read(dir, "pages.jsonl")
	for url, want := range map[string]page.Document{
		"/report.docx": {Type: "docx", Author: "N. N."}, "/paper.pdf": {Type: "pdf", Pages: 2, Author: "Émile"},
		"/half.pdf": {Type: "pdf", WhyNot: "cut"}, "/mail.rtf": {Type: "rtf", WhyNot: "unsupported"},
	} {
		if d := pages[url].Document; d == nil || d.Type != want.Type || d.Pages != want.Pages || d.Author != want.Author ||
			d.WhyNot != want.WhyNot || (d.Detail != "") != (want.WhyNot != "") {
			t.Errorf("%s: %+v, want %+v", url, d, want)
		}
	}
	if pages["/from-docx.html"].Title == "" || pages["/from-pdf.html"].Title == "" || pages["/paper.pdf"].Title != "A paper" {
		t.Errorf("links were not followed, or a title is missing: %v", pages)
	}
	const paper = "On giraffes\nGiraffes are tall.\nMore is on another page."
	if got := read(dir, "text.jsonl")["/paper.pdf"]; got.Text != paper || got.Lang != "en" {
		t.Errorf("the text of a PDF: %+v", got)
	}

	old := filepath.Join(t.TempDir(), "old") // a crawl that did not read documents
	kumo("crawl", "-q", "-o", old, "--delay", "0", site)
	if pages := read(old, "pages.jsonl"); pages["/paper.pdf"].Document != nil || pages["/from-pdf.html"].URL != "" {
		t.Errorf("without --text: %v", pages)
	}
	kumo("index", "-q", old)
	if found := kumo("search", "-o", old, "giraffes"); !strings.Contains(found, site+"/paper.pdf") {
		t.Errorf("kumo search finds %s", found)
	}
	kumo("export", "--to", "markdown", old, filepath.Join(old, "md"))
	files, err := filepath.Glob(filepath.Join(old, "md", "*", "paper*.md"))
	if err != nil || len(files) != 1 {
		t.Fatalf("Markdown files: %v, %v", files, err)
	}
	if text, err := os.ReadFile(files[0]); err != nil || !strings.Contains(string(text), "# On giraffes") ||
		!strings.Contains(string(text), "author: \"Émile\"") {
		t.Errorf("%s, %v", text, err)
	}
	kumo("crawl", "-q", "-o", old, "--delay", "0", "--text")
	if got := read(old, "text.jsonl"); got["/paper.pdf"].Text != paper || got["/report.docx"].Text == "" {
		t.Errorf("texts that are written later: %+v", got)
	}
	kumo("verify", "-q", dir)
	kumo("verify", "-q", old)
	if out := kumo("explain", "-o", dir, site+"/mail.rtf"); !strings.Contains(out,
		"not all of its text could be read: unsupported") {
		t.Errorf("kumo explain says\n%s", out)
	}
}

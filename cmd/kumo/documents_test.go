package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	doc "kumo/internal/content/document"
)

// TestDocumentWorker reads a PDF file in a child process of kumo.
func TestDocumentWorker(t *testing.T) {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" || runtime.GOOS == "windows" {
		t.Skip("PDF files cannot be read here, or the test's binary cannot be linked")
	}
	t.Setenv("XDG_CACHE_HOME", filepath.Join(os.TempDir(), "kumo-test-documents")) // compiled once a computer
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(t.TempDir(), "kumo") // by this name the test's binary is kumo
	if err := os.Symlink(self, binary); err != nil {
		t.Fatal(err)
	}
	w := newDocumentWorker(binary, 1)
	defer w.Close()
	// without the table of objects, which PDFium then rebuilds
	const file = "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n" +
		"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 300]/Contents 4 0 R/Resources<</Font<</F<</Type/Font" +
		"/Subtype/Type1/BaseFont/Helvetica>>>>>>>>endobj\n4 0 obj<</Length 45>>stream\n" +
		"BT /F 12 Tf 20 200 Td (A PDF is read.) Tj ET \nendstream endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
	d, err := w.Read(t.Context(), strings.NewReader(file), doc.Default())
	if err != nil {
		t.Fatal(err)
	}
	if d.Plain() != "A PDF is read." || d.Pages != 1 || d.Problem != "" {
		t.Errorf("got %+v", d)
	}
}

package check

import (
	"archive/zip"
	"bytes"
	"strings"
	"testing"

	"kumo/internal/content/document/reader"
)

// openDocument returns an odt file.
func openDocument(t *testing.T, body string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, e := range [][2]string{{"mimetype", "application/vnd.oasis.opendocument.text"},
		{"content.xml", `<o:document-content xmlns:o="o" xmlns:text="t" xmlns:xlink="x"><o:body>` + body +
			`</o:body></o:document-content>`}} {
		w, err := z.Create(e[0])
		if err == nil {
			_, err = w.Write([]byte(e[1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestDocument(t *testing.T) {
	read := Document(reader.New(reader.Config{}))
	body := openDocument(t, `<text:h text:outline-level="1">Title</text:h>`+
		`<text:p>See <text:a xlink:href="a.html">this</text:a>.</text:p>`)
	out, err := read(DocumentIn{body})
	if err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	if err := Print(&shown, out); err != nil {
		t.Fatal(err)
	}
	want := `format     odt
title      Title
author     none
published  none
modified   none
lang       none

url     text
a.html  this

Title
See this.
`
	if shown.String() != want {
		t.Errorf("shown:\n%s\nwant:\n%s", shown.String(), want)
	}
	if out, err = read(DocumentIn{body[:100]}); err != nil || out.Problem != "broken" || out.Format != "zip" {
		t.Errorf("a cut file is read as %+v, %v", out, err)
	}
	if _, err := read(DocumentIn{[]byte("plain text")}); err == nil || !strings.Contains(err.Error(), "no format") {
		t.Error(err)
	}
}

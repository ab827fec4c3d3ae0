//go:build (amd64 || arm64) && (linux || darwin || windows || freebsd)

package pdf

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"kumo/internal/content/document"
	"kumo/internal/content/document/worker"
)

var cacheDir = filepath.Join(os.TempDir(), "kumo-test-pdfium")

// shared compiles PDFium once for all tests of this computer.
var shared *Reader

func TestMain(m *testing.M) {
	shared = New(Config{CacheDir: cacheDir, Memory: 256 << 20})
	if len(os.Args) == 2 && os.Args[1] == "child" {
		err := worker.Serve(os.Stdin, os.Stdout, func(worker.Hello) worker.Reader { return shared })
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	code := m.Run()
	if err := shared.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func read(t *testing.T, data []byte, lim document.Limits) (*document.Document, error) {
	t.Helper()
	if err := shared.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return shared.Read(ctx, bytes.NewReader(data), lim)
}

func mustRead(t *testing.T, data []byte) *document.Document {
	t.Helper()
	d, err := read(t, data, document.Default())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// file builds a PDF file of numbered objects; the first is the catalog.
func file(objects ...string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.7\n%\xE2\xE3\xCF\xD3\n")
	offsets := make([]int, 0, len(objects))
	for i, o := range objects {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	xref := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, o := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(&b, "trailer\n<</Size %d/Root 1 0 R/Info %d 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1,
		len(objects), xref)
	return b.Bytes()
}

func stream(dict, content string) string {
	return fmt.Sprintf("<<%s/Length %d>>\nstream\n%s\nendstream", dict, len(content), content)
}

// page builds a file with a page of the content in Helvetica (F1) and a Hebrew font (F2); extra entries go into the
// catalog and the page, the last object is the information dictionary.
func page(content, catalog, pageEntries string, more ...string) []byte {
	hebrew := stream("", "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def\n"+
		"1 begincodespacerange <0000> <FFFF> endcodespacerange\n1 beginbfrange <0001> <001B> <05D0> endbfrange\n"+
		"endcmap end end")
	objects := []string{"<</Type/Catalog/Pages 2 0 R" + catalog + ">>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R/F2 6 0 R>>>>" +
			pageEntries + ">>",
		stream("", content), "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
		"<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/Identity-H/DescendantFonts[7 0 R]/ToUnicode 8 0 R>>",
		"<</Type/Font/Subtype/CIDFontType2/BaseFont/X/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>" +
			"/DW 600/FontDescriptor 9 0 R>>",
		hebrew,
		"<</Type/FontDescriptor/FontName/X/Flags 4/FontBBox[0 -200 1000 800]/ItalicAngle 0/Ascent 800/Descent -200" +
			"/CapHeight 700/StemV 80>>"}
	return file(append(objects, more...)...)
}

// show writes lines of text from a place on, 14 points apart.
func show(x, y, size int, lines ...string) string {
	var b strings.Builder
	for i, l := range lines {
		fmt.Fprintf(&b, "BT /F1 %d Tf %d %d Td (%s) Tj ET\n", size, x, y-i*(size+2), l)
	}
	return b.String()
}

func texts(d *document.Document) []string {
	var all []string
	for _, b := range d.Blocks {
		all = append(all, b.Text)
	}
	return all
}

func TestText(t *testing.T) {
	content := show(72, 720, 20, "The Title") +
		show(72, 690, 12, "A crawler reads pages in the order in which their host-", "names come, and never more than the rules al-",
			"low. This is the end of it.") +
		show(72, 630, 12, "\\225 First item of a list", "\\225 Second item")
	d := mustRead(t, page(content, "/Lang(en-GB)", "", "<</Title(A title)/Author(\\376\\377\\000J\\000o)"+
		"/CreationDate(D:20260102030405+01'00')/ModDate(D:20260103)>>"))
	want := []document.Block{
		{Kind: document.Heading, Level: 1, Text: "The Title", Page: 1},
		{Text: "A crawler reads pages in the order in which their hostnames come, and never more than the rules allow. " +
			"This is the end of it.", Page: 1},
		{Kind: document.Item, Text: "First item of a list", Page: 1},
		{Kind: document.Item, Text: "Second item", Page: 1},
	}
	if len(d.Blocks) != len(want) {
		t.Fatalf("blocks %q", texts(d))
	}
	for i, b := range d.Blocks {
		if b.Kind != want[i].Kind || b.Level != want[i].Level || b.Text != want[i].Text || b.Page != want[i].Page {
			t.Errorf("block %d is %+v, want %+v", i, b, want[i])
		}
	}
	if d.Title != "A title" || d.Author != "Jo" || d.Published != "2026-01-02T03:04:05+01:00" ||
		d.Modified != "2026-01-03" || d.Lang != "en-GB" || d.Pages != 1 || d.Problem != "" {
		t.Errorf("metadata %+v", d)
	}
}

func TestColumns(t *testing.T) {
	left := []string{"The first column has a text that", "is long enough to be broken and", "that goes on at the top of the"}
	right := []string{"second column without a new", "paragraph. It ends there."}
	d := mustRead(t, page(show(72, 700, 11, left...)+show(320, 700, 11, right...), "", "", "<<>>"))
	want := strings.Join(append(left, right...), " ")
	if got := strings.Join(texts(d), "|"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRightToLeft(t *testing.T) {
	// as a printer writes it: the last letter first, from left to right; the codes are those of page's font
	visual := func(s string) string {
		chars := []rune(s)
		slices.Reverse(chars)
		var b strings.Builder
		for _, r := range chars {
			fmt.Fprintf(&b, "%04X", r-0x5D0+1)
		}
		return b.String()
	}
	content := fmt.Sprintf("BT /F2 14 Tf 300 700 Td <%s> Tj ET\nBT /F2 14 Tf 250 700 Td <%s> Tj ET", visual("שלום"),
		visual("עולם"))
	d := mustRead(t, page(content, "", "", "<<>>"))
	if got := strings.Join(texts(d), "|"); got != "שלום עולם" {
		t.Errorf("got %q", got)
	}
}

// TestAccents: accents are characters of their own, over the letters.
func TestAccents(t *testing.T) {
	content := "BT /F1 12 Tf 72 700 Td (f) Tj 4.6 0 Td (\\250) Tj -1.3 0 Td (ur ) Tj ET\n" + // on the line
		"BT /F1 12 Tf 100 700 Td (Uber) Tj 2.3 2.5 Td (\\250) Tj ET" // raised, after the word
	if got := mustRead(t, page(content, "", "", "<<>>")).Plain(); got != "für Über" {
		t.Errorf("got %q", got)
	}
}

func TestLigatures(t *testing.T) {
	if got := clean([]rune("o\uFB03ce \uFB01le \uFEFB\u00AD x\x02")); got != "office file لا x" {
		t.Errorf("got %q", got)
	}
}

func TestLinks(t *testing.T) {
	content := show(72, 700, 12, "See the manual, and https://example.org/a_\\(b\\)?x=1.", "Also https://example.org/long/",
		"path/to/it today.")
	d := mustRead(t, page(content, "/Names<</EmbeddedFiles<</Names[(data.csv) 12 0 R]>>>>", "/Annots[10 0 R 11 0 R]",
		"<</Type/Annot/Subtype/Link/Rect[96 697 157 711]/A<</S/URI/URI(https://example.com/manual)>>>>",
		"<</Type/Annot/Subtype/Link/Rect[400 97 410 111]/A<</S/URI/URI(https://example.com/picture)>>>>",
		"<</Type/Filespec/F(data.csv)/UF(data.csv)/EF<</F 13 0 R>>>>", stream("/Type/EmbeddedFile", "1,2"), "<<>>"))
	var got []string
	for _, b := range d.Blocks {
		for _, l := range b.Links {
			got = append(got, l.Text+" "+l.URL)
		}
	}
	want := []string{"the manual https://example.com/manual", "https://example.org/a_(b)?x=1 https://example.org/a_(b)?x=1",
		"https://example.org/long/path/to/it https://example.org/long/path/to/it"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q; text %q", got, want, texts(d))
	}
	if !slices.Equal(d.Links, []string{"https://example.com/picture"}) {
		t.Errorf("other links %q", d.Links)
	}
	if !slices.Equal(d.Attachments, []string{"data.csv"}) {
		t.Errorf("attachments %q", d.Attachments)
	}
}

func TestXMP(t *testing.T) {
	const packet = `<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/">
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about=""
 xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xmp="http://ns.adobe.com/xap/1.0/"
 xmlns:tdm="http://www.w3.org/ns/tdmrep/" xmp:CreateDate="2026-02-03T04:05:06Z" tdm:reservation="1">
<tdm:policy>https://example.com/policy.json</tdm:policy>
<dc:title><rdf:Alt><rdf:li xml:lang="x-default">The title &amp; more</rdf:li><rdf:li xml:lang="de">Titel</rdf:li>
</rdf:Alt></dc:title><dc:creator><rdf:Seq><rdf:li>A. Author</rdf:li><rdf:li>B. Author</rdf:li></rdf:Seq></dc:creator>
<dc:rights><rdf:Alt><rdf:li xml:lang="x-default">CC BY 4.0</rdf:li></rdf:Alt></dc:rights>
</rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end="w"?>`
	d := mustRead(t, page(show(72, 700, 12, "Text"), "/Metadata 10 0 R", "", stream("/Type/Metadata/Subtype/XML", packet),
		"<</Title(converted.doc)/CreationDate(D:20200101)>>"))
	if d.Title != "The title & more" || d.Author != "A. Author, B. Author" || d.Rights != "CC BY 4.0" ||
		d.Published != "2026-02-03T04:05:06Z" {
		t.Errorf("metadata %+v", d)
	}
	want := []document.Property{{Name: "tdm-reservation", Value: "1"},
		{Name: "tdm-policy", Value: "https://example.com/policy.json"}}
	if !slices.Equal(d.Properties, want) {
		t.Errorf("properties %+v", d.Properties)
	}
}

func TestForm(t *testing.T) {
	d := mustRead(t, page(show(72, 700, 12, "Name:"), "/AcroForm<</Fields[10 0 R]/DA(/F1 12 Tf)>>", "/Annots[10 0 R]",
		"<</Type/Annot/Subtype/Widget/FT/Tx/T(name)/V(Ada Lovelace)/Rect[120 695 300 715]>>", "<<>>"))
	if got := strings.Join(texts(d), "|"); got != "Name:|Ada Lovelace" {
		t.Errorf("got %q", got)
	}
}

func TestProblems(t *testing.T) {
	ordinary := page(show(72, 700, 12, "Text"), "", "", "<<>>")
	locked := bytes.Replace(ordinary, []byte("/Root 1 0 R"), []byte("/Root 1 0 R/ID[<00><00>]/Encrypt<</Filter/Standard/V 1"+
		"/R 2/P -4/O<"+strings.Repeat("41", 32)+">/U<"+strings.Repeat("42", 32)+">>>"), 1)
	for _, c := range []struct {
		name string
		data []byte
		want document.Problem
	}{
		{"empty", nil, document.Broken},
		{"no PDF", []byte("%PDF-1.4\nhello\n%%EOF"), document.Broken},
		{"cut before the page", ordinary[:60], document.Cut},
		{"cut", ordinary[:len(ordinary)-80], document.Cut},
		{"scan", page("0 0 612 792 re f", "", "", "<<>>"), document.NoText},
		{"password", locked, document.Encrypted},
		{"ordinary", ordinary, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := read(t, c.data, document.Default())
			var got document.Problem
			if err != nil {
				got, _ = document.ProblemOf(err)
			} else {
				got = d.Problem
			}
			if got != c.want {
				t.Errorf("problem %q (%v), want %q", got, err, c.want)
			}
		})
	}
}

func fivePages() []byte {
	kids, objects := "", []string{"<</Type/Catalog/Pages 2 0 R>>", ""}
	for i := range 5 {
		kids += fmt.Sprintf("%d 0 R ", 3+2*i)
		objects = append(objects, fmt.Sprintf("<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents %d 0 R"+
			"/Resources<</Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>", 4+2*i),
			stream("", show(72, 700, 12, fmt.Sprintf("Page %d", i+1))))
	}
	objects[1] = "<</Type/Pages/Kids[" + kids + "]/Count 5>>"
	return file(append(objects, "<<>>")...)
}

func TestLimits(t *testing.T) {
	data := fivePages()
	lim := document.Default()
	lim.Pages = 2
	d, err := read(t, data, lim)
	if err != nil || d.Problem != document.TooLarge || d.Pages != 5 || strings.Join(texts(d), " ") != "Page 1 Page 2" {
		t.Errorf("%+v, %v", d, err)
	}
	lim = document.Default()
	lim.Text = 10
	d, err = read(t, data, lim)
	if err != nil || d.Problem != document.TooLarge || !strings.HasPrefix(strings.Join(texts(d), " "), "Page 1") {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestTimeout: a document whose time is up after some pages has their text.
func TestTimeout(t *testing.T) {
	if err := shared.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx := &countdown{Context: t.Context(), left: 4} // one for the start
	d, err := shared.Read(ctx, bytes.NewReader(fivePages()), document.Default())
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(texts(d), " "); d.Problem != document.Timeout || got != "Page 1 Page 2 Page 3" {
		t.Errorf("problem %q, text %q", d.Problem, got)
	}
}

// A countdown is done after its error was asked for so many times.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

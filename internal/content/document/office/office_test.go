package office_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumo/internal/content/document"
	"kumo/internal/content/document/office"
)

// An entry is an entry of an archive.
type entry struct{ name, content string }

func archive(t testing.TB, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, e := range entries {
		w, err := z.Create(e.name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

const (
	wordNS  = `xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" `
	relNS   = `xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" `
	relBase = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
	types   = `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>`
)

// rels returns a file of relations, given as id, kind and target. Targets that are URLs are external.
func rels(all ...string) string {
	var b strings.Builder
	b.WriteString(`<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">`)
	for i := 0; i < len(all); i += 3 {
		mode := ""
		if strings.Contains(all[i+2], "://") {
			mode = ` TargetMode="External"`
		}
		fmt.Fprintf(&b, `<Relationship Id="%s" Type="%s%s" Target="%s"%s/>`, all[i], relBase, all[i+1], all[i+2], mode)
	}
	return b.String() + "</Relationships>"
}

// docx returns a document with a body, and further entries.
func docx(t testing.TB, body string, more ...entry) []byte {
	return archive(t, append([]entry{{"[Content_Types].xml", types},
		{"_rels/.rels", rels("a", "officeDocument", "word/document.xml", "b", "metadata/core-properties",
			"docProps/core.xml")},
		{"word/document.xml", `<w:document ` + wordNS + relNS + `><w:body>` + body + `</w:body></w:document>`}}, more...)...)
}

func read(t *testing.T, body []byte) *document.Document {
	t.Helper()
	d, err := office.Read(bytes.NewReader(body), document.Default())
	if err != nil {
		t.Fatal(err)
	}
	if d.Problem != "" {
		t.Fatalf("problem %s: %s", d.Problem, d.Detail)
	}
	return d
}

func wantBlocks(t *testing.T, d *document.Document, want ...document.Block) {
	t.Helper()
	if diff := cmp.Diff(want, d.Blocks); diff != "" {
		t.Error(diff)
	}
}

func TestWord(t *testing.T) {
	body := docx(t, `<w:p><w:pPr><w:pStyle w:val="berschrift1"/></w:pPr><w:r><w:t>Kapitel</w:t></w:r></w:p>
<w:p><w:pPr><w:pStyle w:val="eigene"/></w:pPr><w:r><w:t>Based on it</w:t></w:r></w:p>
<w:p><w:pPr><w:outlineLvl w:val="2"/></w:pPr><w:r><w:t>Level by itself</w:t></w:r></w:p>
<w:p><w:r><w:t xml:space="preserve">See </w:t></w:r><w:hyperlink r:id="l1"><w:r><w:t>the</w:t></w:r><w:r
><w:t xml:space="preserve"> site</w:t></w:r>
</w:hyperlink><w:r><w:t>,</w:t><w:tab/><w:t>or</w:t><w:br/></w:r><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r>
<w:instrText xml:space="preserve"> HYPERLINK "https://example.org/f" \o "tip" </w:instrText></w:r><w:r
><w:fldChar w:fldCharType="separate"/></w:r>
<w:r><w:t>a field</w:t></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r><w:r><w:t>.</w:t></w:r>
<w:r><w:footnoteReference w:id="2"/></w:r><w:commentRangeStart w:id="0"/></w:p>
<w:p><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr><w:ins><w:r><w:t>kept</w:t></w:r></w:ins
><w:del><w:r><w:delText>deleted</w:delText></w:r></w:del>
<w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r></w:p>
<w:tbl><w:tr><w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p><w:p><w:r><w:t>b</w:t></w:r></w:p></w:tc><w:tc><w:p
><w:r><w:t>c</w:t></w:r></w:p></w:tc></w:tr></w:tbl>
<w:p><w:r><mc:AlternateContent xmlns:mc="m"><mc:Choice><w:drawing><w:txbxContent><w:p><w:r><w:t
>in a box</w:t></w:r></w:p></w:txbxContent>
</w:drawing></mc:Choice><mc:Fallback><w:pict><w:txbxContent><w:p><w:r><w:t>in a box</w:t></w:r></w:p
></w:txbxContent></w:pict></mc:Fallback>
</mc:AlternateContent></w:r><w:r><w:t>שלום (abc) עולם</w:t></w:r></w:p>`,
		entry{"word/_rels/document.xml.rels", rels("l1", "hyperlink", "https://example.org/site", "s", "styles", "styles.xml",
			"f", "footnotes", "footnotes.xml", "c", "comments", "/word/comments.xml")},
		entry{"word/styles.xml", `<w:styles ` + wordNS + `><w:style w:type="paragraph" w:styleId="berschrift1"
><w:name w:val="heading 1"/></w:style>
<w:style w:type="paragraph" w:styleId="eigene"><w:basedOn w:val="zwei"/></w:style>
<w:style w:type="paragraph" w:styleId="zwei"><w:basedOn w:val="eigene"/><w:pPr><w:outlineLvl w:val="1"
/></w:pPr></w:style></w:styles>`},
		entry{"word/footnotes.xml", `<w:footnotes ` + wordNS + `><w:footnote w:type="separator" w:id="0"><w:p
><w:r><w:t>--</w:t></w:r></w:p></w:footnote>
<w:footnote w:id="2"><w:p><w:r><w:t>A footnote.</w:t></w:r></w:p></w:footnote></w:footnotes>`},
		entry{"word/comments.xml", `<w:comments ` + wordNS + `><w:comment w:id="0"><w:p><w:r><w:t
>A comment.</w:t></w:r></w:p></w:comment></w:comments>`},
		entry{"docProps/core.xml", `<cp:coreProperties xmlns:cp="c" xmlns:dc="http://purl.org/dc/elements/1.1/"
xmlns:dcterms="t">
<dc:title>A title</dc:title><dc:creator>N. N.; M. M.</dc:creator><dcterms:created>2021-03-04T05:06:07Z</dcterms:created>
<dcterms:modified>2022-03-04T05:06:07</dcterms:modified><dc:language>de-DE</dc:language></cp:coreProperties>`})
	d := read(t, body)
	wantBlocks(t, d,
		document.Block{Kind: document.Heading, Level: 1, Text: "Kapitel"},
		document.Block{Kind: document.Heading, Level: 2, Text: "Based on it"},
		document.Block{Kind: document.Heading, Level: 3, Text: "Level by itself"},
		document.Block{Text: "See the site, or a field.", Links: []document.Link{
			{Text: "the site", URL: "https://example.org/site"}, {Text: "a field", URL: "https://example.org/f"}}},
		document.Block{Kind: document.Note, Text: "A footnote."}, document.Block{Kind: document.Note, Text: "A comment."},
		document.Block{Kind: document.Item, Text: "kept"},
		document.Block{Kind: document.Row, Cells: []string{"a b", "c"}},
		document.Block{Text: "שלום (abc) עולם"}, document.Block{Text: "in a box"})
	if d.Format != document.DOCX || d.Title != "A title" || d.Author != "N. N., M. M." ||
		d.Published != "2021-03-04T05:06:07Z" || d.Modified != "2022-03-04" || d.Lang != "de-DE" {
		t.Errorf("metadata: %+v", d)
	}
}

func TestWordSymbolsAndCharts(t *testing.T) {
	d := read(t, docx(t, `<w:p><w:r><w:t>a</w:t><w:sym w:font="Wingdings" w:char="F0E0"/><w:t>b</w:t><w:sym
w:char="2192"/></w:r></w:p>
<w:p><w:r><w:drawing><c:chart xmlns:c="c" r:id="c"/></w:drawing></w:r></w:p>`,
		entry{"word/_rels/document.xml.rels", rels("c", "chart", "charts/chart1.xml")},
		entry{"word/charts/chart1.xml", `<c:chartSpace xmlns:c="c" xmlns:a="a"><c:title><c:tx><c:rich><a:p><a:r
><a:t>Sales</a:t></a:r></a:p>
</c:rich></c:tx></c:title><c:cat><c:strRef><c:strCache><c:pt><c:v>May</c:v></c:pt></c:strCache></c:strRef
></c:cat></c:chartSpace>`}))
	wantBlocks(t, d, document.Block{Text: "a b→"}, document.Block{Text: "Sales"}, document.Block{Text: "May"})
}

// TestWordStrict reads the strict form, in UTF-16, with names in another case.
func TestWordStrict(t *testing.T) {
	text := `<?xml version="1.0" encoding="UTF-16"?><document
xmlns="http://purl.oclc.org/ooxml/wordprocessingml/main"><body><p><r>` +
		`<t>Grüße</t></r></p></body></document>`
	var utf16 []byte
	for _, r := range "\uFEFF" + text {
		utf16 = append(utf16, byte(r), byte(r>>8))
	}
	d := read(t, archive(t, entry{"[Content_Types].xml", types},
		entry{"_rels/.rels", strings.ReplaceAll(rels("x", "officeDocument", "/Word/Document.xml"), relBase,
			"http://purl.oclc.org/ooxml/officeDocument/relationships/")}, entry{`word\document.XML`, string(utf16)}))
	wantBlocks(t, d, document.Block{Text: "Grüße"})
}

const drawNS = `xmlns:a="a" xmlns:p="p" ` + relNS

func slide(title, text string) string {
	return `<p:sld ` + drawNS + `><p:cSld><p:spTree><p:sp><p:nvSpPr><p:nvPr><p:ph type="body"/></p:nvPr
></p:nvSpPr><p:txBody><a:p><a:r>` +
		`<a:rPr><a:hlinkClick r:id="l"/></a:rPr><a:t>` + text + `</a:t></a:r></a:p></p:txBody></p:sp>` +
		`<p:sp><p:nvSpPr><p:nvPr><p:ph type="title"/></p:nvPr></p:nvSpPr><p:txBody><a:p><a:r><a:t>` + title +
		`</a:t></a:r></a:p></p:txBody></p:sp><p:sp><p:nvPr><p:ph type="sldNum"/></p:nvPr><a:p><a:fld><a:t
>7</a:t></a:fld></a:p></p:sp>` +
		`</p:spTree></p:cSld></p:sld>`
}

func TestSlides(t *testing.T) {
	d := read(t, archive(t, entry{"[Content_Types].xml", types},
		entry{"_rels/.rels", rels("a", "officeDocument", "ppt/presentation.xml")},
		entry{"ppt/presentation.xml", `<p:presentation ` + drawNS + `><p:sldIdLst><p:sldId id="256" r:id="r2"
/><p:sldId id="257" r:id="r1"/>` +
			`</p:sldIdLst></p:presentation>`},
		entry{"ppt/_rels/presentation.xml.rels", rels("r1", "slide", "slides/slide1.xml", "r2", "slide",
			"slides/slide2.xml")},
		entry{"ppt/slides/slide1.xml", slide("Second", "two")}, entry{"ppt/slides/slide2.xml", slide("First", "one")},
		entry{"ppt/slides/_rels/slide2.xml.rels", rels("l", "hyperlink", "https://example.org/", "n", "notesSlide",
			"../notesSlides/notesSlide1.xml")},
		entry{"ppt/notesSlides/notesSlide1.xml", `<p:notes ` + drawNS + `><p:sp><p:ph type="body"/><a:p><a:r
><a:t>Say hello.</a:t></a:r></a:p></p:sp>` +
			`</p:notes>`}))
	wantBlocks(t, d,
		document.Block{Kind: document.Heading, Level: 2, Text: "First", Page: 1},
		document.Block{Kind: document.Item, Text: "one", Page: 1,
			Links: []document.Link{{Text: "one", URL: "https://example.org/"}}},
		document.Block{Kind: document.Note, Text: "Say hello.", Page: 1},
		document.Block{Kind: document.Heading, Level: 2, Text: "Second", Page: 2},
		document.Block{Kind: document.Item, Text: "two", Page: 2})
	if d.Pages != 2 || d.Title != "First" || d.Format != document.PPTX {
		t.Errorf("metadata: %+v", d)
	}
}

func TestSheets(t *testing.T) {
	d := read(t, archive(t, entry{"[Content_Types].xml", types},
		entry{"_rels/.rels", rels("a", "officeDocument", "xl/workbook.xml")},
		entry{"xl/workbook.xml", `<workbook ` + relNS + `><sheets><sheet name="Prices" r:id="s"/></sheets></workbook>`},
		entry{"xl/_rels/workbook.xml.rels", rels("s", "worksheet", "worksheets/sheet1.xml", "x", "sharedStrings",
			"sharedStrings.xml", "y", "styles", "styles.xml")},
		entry{"xl/sharedStrings.xml", `<sst><si><t>Tea</t></si><si><r><t>Cof</t></r><r><t>fee</t></r><rPh><t
>kana</t></rPh></si></sst>`},
		entry{"xl/styles.xml", `<styleSheet><numFmts><numFmt numFmtId="164" formatCode="yyyy\-mm\-dd;@"/></numFmts>` +
			`<cellXfs><xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="4"/><xf numFmtId="22"/><xf numFmtId="9"
/></cellXfs></styleSheet>`},
		entry{"xl/worksheets/_rels/sheet1.xml.rels", rels("h", "hyperlink", "https://example.org/tea", "c", "comments",
			"../comments1.xml")},
		entry{"xl/worksheets/sheet1.xml", `<worksheet ` + relNS + `><sheetData><row r="1"><c r="A1" t="s"><v
>0</v></c><c r="C1" t="s"><v>1</v></c>` +
			`<c r="D1" t="inlineStr"><is><t>in place</t></is></c></row><row r="3"><c r="A3" s="1"><v>44197</v></c
><c r="B3" s="2"><v>3.5</v></c>` +
			`<c r="C3"><v>0.30000000000000004</v></c><c r="D3" s="3"><v>44197.5</v></c><c r="E3" s="4"><v>0.5</v
></c><c r="F3" t="b"><v>1</v></c>` +
			`<c r="G3" t="str"><f>HYPERLINK("https://example.org/f","x")</f><v>x</v></c></row></sheetData><hyperlinks>` +
			`<hyperlink ref="A1" r:id="h"/></hyperlinks></worksheet>`},
		entry{"xl/comments1.xml", `<comments><authors><author>N.</author></authors><commentList><comment
ref="A1"><text><r><t>Hot.</t></r></text>` +
			`</comment></commentList></comments>`}))
	wantBlocks(t, d,
		document.Block{Kind: document.Heading, Level: 2, Text: "Prices", Page: 1},
		document.Block{Kind: document.Row, Cells: []string{"Tea", "", "Coffee", "in place"}, Page: 1,
			Links: []document.Link{{Text: "Tea", URL: "https://example.org/tea"}}},
		document.Block{Kind: document.Row, Page: 1,
			Cells: []string{"2021-01-01", "3.50", "0.3", "2021-01-01 12:00:00", "50%", "TRUE", "x"},
			Links: []document.Link{{Text: "x", URL: "https://example.org/f"}}},
		document.Block{Kind: document.Note, Text: "Hot.", Page: 1})
}

const openNS = `xmlns:office="o" xmlns:text="t" xmlns:table="ta" xmlns:draw="d" xmlns:xlink="x" xmlns:style="s" ` +
	`xmlns:meta="m" xmlns:presentation="pr" xmlns:dc="dc" `

// open returns an OpenDocument file of a kind: text, spreadsheet or presentation.
func open(t testing.TB, kind, body string, more ...entry) []byte {
	return archive(t, append([]entry{{"mimetype", "application/vnd.oasis.opendocument." + kind},
		{"content.xml", `<office:document-content ` + openNS + `><office:automatic-styles><style:style
style:name="P1" style:family="paragraph" ` +
			`style:parent-style-name="Title"/></office:automatic-styles><office:body><office:` + kind + `>` +
			body + `</office:` + kind +
			`></office:body></office:document-content>`}}, more...)...)
}

func TestOpenDocumentText(t *testing.T) {
	d := read(t, open(t, "text", `<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes
><text:p text:style-name="P1">The title</text:p>
<text:h text:outline-level="2">A<text:s text:c="3"/>heading</text:h><text:list><text:list-item><text:p
>one</text:p><text:list><text:list-item>
<text:p>two</text:p></text:list-item></text:list></text:list-item></text:list><text:section><text:p
>See <text:a xlink:href="https://example.org/">this
<text:span>site</text:span></text:a><text:note><text:note-citation>1</text:note-citation><text:note-body
><text:p>A note.</text:p></text:note-body>
</text:note> or <text:a xlink:href="../b.html">that</text:a><office:annotation><dc:creator>N.</dc:creator
><text:p>A comment.</text:p></office:annotation>
<draw:frame><draw:text-box><text:p>in a box</text:p></draw:text-box></draw:frame>.</text:p></text:section>
<table:table><table:table-row><table:table-cell><text:p>a</text:p></table:table-cell
><table:covered-table-cell/><table:table-cell><text:p>b</text:p>
</table:table-cell></table:table-row></table:table>`,
		entry{"meta.xml", `<office:document-meta ` + openNS + `><office:meta><dc:title>T</dc:title
><meta:initial-creator>N. N.</meta:initial-creator>
<dc:creator>M. M.</dc:creator><meta:creation-date>2020-01-02T03:04:05.678</meta:creation-date
><dc:language>fr</dc:language>
<meta:document-statistic meta:page-count="3"/></office:meta></office:document-meta>`}))
	wantBlocks(t, d,
		document.Block{Kind: document.Heading, Level: 1, Text: "The title"},
		document.Block{Kind: document.Heading, Level: 2, Text: "A heading"},
		document.Block{Kind: document.Item, Text: "one"}, document.Block{Kind: document.Item, Text: "two"},
		document.Block{Text: "See this site or that .", Links: []document.Link{{Text: "this site",
			URL: "https://example.org/"},
			{Text: "that", URL: "b.html"}}},
		document.Block{Kind: document.Note, Text: "A note."}, document.Block{Kind: document.Note, Text: "A comment."},
		document.Block{Text: "in a box"}, document.Block{Kind: document.Row, Cells: []string{"a", "", "b"}})
	if d.Title != "T" || d.Author != "N. N." || d.Published != "2020-01-02" || d.Lang != "fr" || d.Pages != 3 ||
		d.Format != document.ODT {
		t.Errorf("metadata: %+v", d)
	}
}

func TestOpenDocumentOthers(t *testing.T) {
	d := read(t, open(t, "spreadsheet", `<table:table table:name="S"><table:table-row
table:number-rows-repeated="100000"><table:table-cell `+
		`table:number-columns-repeated="3"/><table:table-cell><text:p>x</text:p></table:table-cell><table:table-cell `+
		`table:number-columns-repeated="16000"/></table:table-row></table:table>`))
	wantBlocks(t, d, document.Block{Kind: document.Heading, Level: 2, Text: "S", Page: 1},
		document.Block{Kind: document.Row, Cells: []string{"", "", "", "x"}, Page: 1})

	d = read(t, open(t, "presentation", `<draw:page><draw:frame presentation:class="title"><draw:text-box
><text:p>Slide</text:p></draw:text-box>
</draw:frame><draw:custom-shape><text:p>shape</text:p></draw:custom-shape><presentation:notes><draw:frame
><draw:text-box><text:p>Speak.</text:p>
</draw:text-box></draw:frame></presentation:notes></draw:page>`))
	wantBlocks(t, d, document.Block{Kind: document.Heading, Level: 2, Text: "Slide", Page: 1},
		document.Block{Text: "shape", Page: 1}, document.Block{Kind: document.Note, Text: "Speak.", Page: 1})
	if d.Pages != 1 || d.Title != "Slide" || d.Format != document.ODP {
		t.Errorf("metadata: %+v", d)
	}
}

// TestOpenDocumentObject reads a document with an embedded sheet, which embeds itself.
func TestOpenDocumentObject(t *testing.T) {
	const frame = `<draw:frame><draw:object xlink:href="./Object 1"/></draw:frame>`
	d := read(t, open(t, "text", `<text:p>before</text:p>`+frame+frame+`<text:p>after</text:p>`,
		entry{"Object 1/content.xml", `<office:document-content ` + openNS + `><office:body><table:table
><table:table-row><table:table-cell>` +
			`<text:p>a</text:p></table:table-cell><table:table-cell><text:p>b</text:p>` + frame +
			`</table:table-cell></table:table-row>` +
			`</table:table></office:body></office:document-content>`}))
	wantBlocks(t, d, document.Block{Text: "before"}, document.Block{Kind: document.Row, Cells: []string{"a", "b"}},
		document.Block{Text: "after"})
}

func book(t testing.TB, chapter string, more ...entry) []byte {
	return archive(t, append([]entry{{"mimetype", "application/epub+zip"},
		{"META-INF/container.xml", `<container><rootfiles><rootfile full-path="OEBPS/b.opf"/></rootfiles></container>`},
		{"OEBPS/b.opf", `<package xmlns:dc="dc" xmlns:opf="o"><metadata><dc:title>A book</dc:title><dc:creator
>N. N.</dc:creator><dc:creator>M. M.</dc:creator>
<dc:date opf:event="publication">2019-05-06</dc:date><dc:language>ja</dc:language><dc:rights>CC BY</dc:rights>
<dc:description>&lt;p&gt;About &lt;b&gt;it&lt;/b&gt;&lt;/p&gt;</dc:description><meta property="tdm:reservation">1</meta>
<meta name="tdm:policy" content="https://example.org/policy"/><meta property="dcterms:modified"
>2020-05-06T00:00:00Z</meta></metadata>
<manifest><item id="b" href="two.xhtml" media-type="application/xhtml+xml"/><item id="a"
href="ch%201.xhtml" media-type="application/xhtml+xml"/>
<item id="c" href="ch%201.xhtml#part" media-type="application/xhtml+xml"/><item id="i" href="i.png"
media-type="image/png"/></manifest><spine><itemref idref="a"/><itemref
idref="b"/></spine></package>`},
		{"OEBPS/ch 1.xhtml", chapter}, {"OEBPS/two.xhtml", "<html><body>Loose text<p>two</body></html>"}}, more...)...)
}

func TestEPUB(t *testing.T) {
	d := read(t, book(t, `<?xml version="1.0"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"
><head><title/></head><body><h1>One<br/>and</h1>
<div>Before <p>A <a href="https://example.org/">link</a> and <a href="two.xhtml">another&#160;chapter</a
>.</p> after</div><ul><li>item</li></ul>
<table><tr><td>a</td><td>b</td></tr></table><aside>note</aside><p><ruby>漢<rt>かん</rt></ruby>字</p></body
></html>`))
	wantBlocks(t, d,
		document.Block{Kind: document.Heading, Level: 1, Text: "One and", Page: 1}, document.Block{Text: "Before", Page: 1},
		document.Block{Text: "A link and another\u00A0chapter.", Page: 1,
			Links: []document.Link{{Text: "link", URL: "https://example.org/"}}},
		document.Block{Text: "after", Page: 1}, document.Block{Kind: document.Item, Text: "item", Page: 1},
		document.Block{Kind: document.Row, Cells: []string{"a", "b"}, Page: 1},
		document.Block{Kind: document.Note, Text: "note", Page: 1}, document.Block{Text: "漢字", Page: 1},
		document.Block{Text: "Loose text", Page: 2}, document.Block{Text: "two", Page: 2})
	want := &document.Document{Format: document.EPUB, Title: "A book", Author: "N. N., M. M.", Published: "2019-05-06",
		Modified: "2020-05-06T00:00:00Z", Lang: "ja", Rights: "CC BY", Description: "About it", Pages: 2, Blocks: d.Blocks,
		Properties: []document.Property{{Name: "tdm-reservation", Value: "1"},
			{Name: "tdm-policy", Value: "https://example.org/policy"}}}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Error(diff)
	}
}

func TestProblems(t *testing.T) {
	paragraphs := func(n int) string { return strings.Repeat(`<w:p><w:r><w:t>word</w:t></w:r></w:p>`, n) }
	encrypted := docx(t, paragraphs(1))
	encrypted = bytes.ReplaceAll(encrypted, []byte("PK\x01\x02\x14\x00\x14\x00\x08"),
		[]byte("PK\x01\x02\x14\x00\x14\x00\x09"))
	ole := append([]byte("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"), make([]byte, 70_000)...)
	var name []byte
	for _, c := range "EncryptedPackage" {
		name = append(name, byte(c), 0)
	}
	limit := func(change func(l *document.Limits)) document.Limits {
		l := document.Default()
		change(&l)
		return l
	}
	whole := docx(t, paragraphs(100))
	tests := []struct {
		name    string
		body    []byte
		lim     document.Limits
		problem document.Problem
		detail  string
		blocks  int // that are read nonetheless
	}{
		{"a ZIP file", archive(t, entry{"a.txt", "x"}), document.Default(), document.Unsupported, "neither", 0},
		{"cut", whole[:len(whole)-30], document.Default(), document.Broken, "open ZIP archive", 0},
		{"encrypted ZIP", encrypted, document.Default(), document.Encrypted, "needs a password", 0},
		{"encrypted docx", append(bytes.Clone(ole), name...), document.Default(), document.Encrypted, "needs a password", 0},
		{"old format", ole, document.Default(), document.Unsupported, "before 2007", 0},
		{"encrypted odt", open(t, "text", "<text:p>x</text:p>", entry{"META-INF/manifest.xml",
			`<manifest:manifest xmlns:manifest="m">` +
				`<manifest:file-entry manifest:full-path="content.xml"><manifest:encryption-data
/></manifest:file-entry></manifest:manifest>`}),
			document.Default(), document.Encrypted, "needs a password", 0},
		{"drm", book(t, "x", entry{"META-INF/encryption.xml", `<encryption><EncryptedData><EncryptionMethod
Algorithm="aes"/><CipherReference ` +
			`URI="OEBPS/ch%201.xhtml"/></EncryptedData></encryption>`}), document.Default(), document.Encrypted,
			"digital rights", 2},
		{"XML ends", docx(t, paragraphs(3)+"</w:broken>"), document.Default(), document.Broken, "syntax error", 3},
		{"named twice", docx(t, paragraphs(2), entry{"word/document.xml", "<x/>"}), document.Default(), document.Broken,
			"two entries", 2},
		{"entity", docx(t, paragraphs(2)+"<w:p><w:r><w:t>&lol;</w:t></w:r></w:p>"), document.Default(),
			document.Broken, "entity", 2},
		{"text", whole, limit(func(l *document.Limits) { l.Text = 40 }), document.TooLarge, "40 bytes of text", 10},
		{"blocks", whole, limit(func(l *document.Limits) { l.Blocks = 7 }), document.TooLarge, "7 paragraphs", 7},
		{"entries", whole, limit(func(l *document.Limits) { l.Entries = 2 }), document.TooLarge, "2 entries", 0},
		{"inflated", docx(t, paragraphs(2000)), limit(func(l *document.Limits) { l.Inflated = 20_000 }), document.TooLarge,
			"20000 inflated", 0},
		{"depth", docx(t, paragraphs(2)+strings.Repeat("<w:sdt>", 300)), document.Default(), document.TooLarge,
			"256 nested", 2},
		{"ratio", docx(t, paragraphs(2)+"<w:p>"+strings.Repeat(" ", 4<<20)+"</w:p>"), document.Default(), document.TooLarge,
			"200 times", 2},
		{"chapters", book(t, "one"), limit(func(l *document.Limits) { l.Pages = 1 }), document.TooLarge, "1 chapters", 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := office.Read(bytes.NewReader(tt.body), tt.lim)
			if err != nil {
				var known *document.Error
				if !errors.As(err, &known) {
					t.Fatalf("error %v is of type %T", err, err)
				}
				d = &document.Document{}
				d.Problem, d.Detail = document.ProblemOf(err)
			}
			if d.Problem != tt.problem || !strings.Contains(d.Detail, tt.detail) {
				t.Errorf("%s: %s, want %s: %s", d.Problem, d.Detail, tt.problem, tt.detail)
			}
			if tt.name == "inflated" { // depends on how much is read at once
				tt.blocks = len(d.Blocks)
			}
			if len(d.Blocks) != tt.blocks {
				t.Errorf("%d blocks, want %d", len(d.Blocks), tt.blocks)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	f.Add(docx(f, `<w:p><w:r><w:t>x</w:t></w:r></w:p><w:tbl><w:tr><w:tc><w:p/></w:tc></w:tr></w:tbl>`))
	f.Add(open(f, "text", `<text:p>x<text:note><text:note-body><text:p>y</text:p></text:note-body></text:note></text:p>`))
	f.Add(open(f, "spreadsheet", `<table:table table:name="S"><table:table-row><table:table-cell
/></table:table-row></table:table>`))
	f.Add(book(f, "<p>x"))
	lim := document.Default()
	lim.Inflated, lim.Text = 4<<20, 1<<20
	f.Fuzz(func(t *testing.T, body []byte) {
		check(t, body, lim)
	})
}

// FuzzXML reads hostile XML as the main part of each format.
func FuzzXML(f *testing.F) {
	f.Add(`<w:p><w:r><w:fldChar w:fldCharType="begin"/><w:instrText>HYPERLINK x</w:instrText><w:t>x</w:t></w:r></w:p>`)
	f.Add(`<table:table-row><table:table-cell table:number-columns-repeated="99999"><text:p>x</text:p
></table:table-cell></table:table-row>`)
	f.Add(`<c r="ZZ9" t="s" s="1"><v>1e300</v></c>`)
	lim := document.Default()
	lim.Inflated, lim.Text = 4<<20, 1<<20
	f.Fuzz(func(t *testing.T, x string) {
		check(t, docx(t, x), lim)
		check(t, open(t, "text", x), lim)
		check(t, open(t, "spreadsheet", x), lim)
		check(t, book(t, x), lim)
		check(t, archive(t, entry{"[Content_Types].xml", types}, entry{"xl/workbook.xml", `<workbook ` + relNS +
			`><sheet name="x" r:id="s"/></workbook>`}, entry{"xl/_rels/workbook.xml.rels", rels("s", "worksheet", "s.xml", "y",
			"styles", "y.xml")}, entry{"xl/s.xml", "<sheet><row>" + x + "</row></sheet>"}, entry{"xl/y.xml",
			"<s>" + x + "</s>"}), lim)
		check(t, archive(t, entry{"[Content_Types].xml", types}, entry{"ppt/presentation.xml", `<presentation ` + relNS +
			`><sldId r:id="s"/></presentation>`}, entry{"ppt/_rels/presentation.xml.rels", rels("s", "slide", "s.xml")},
			entry{"ppt/s.xml", "<sld>" + x + "</sld>"}), lim)
	})
}

// check reads a document, and tests what holds for each.
func check(t *testing.T, body []byte, lim document.Limits) {
	t.Helper()
	d, err := office.Read(bytes.NewReader(body), lim)
	var known *document.Error
	switch {
	case err != nil && (!errors.As(err, &known) || d != nil):
		t.Fatalf("document %v, error %v of type %T", d, err, err)
	case err != nil:
		return
	}
	if size := len(d.Plain()); size > lim.Text+2*lim.Blocks || len(d.Blocks) > lim.Blocks {
		t.Fatalf("%d bytes of text in %d blocks", size, len(d.Blocks))
	}
	d.HTML()
}

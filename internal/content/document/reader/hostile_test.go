package reader_test

import (
	"archive/zip"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"kumo/internal/content/document"
	"kumo/internal/content/document/reader"
)

// TestHostileFiles reads files that attack a reader. Each must end within bounds of time and memory, without a panic.
func TestHostileFiles(t *testing.T) {
	const (
		maxTime   = 20 * time.Second // most take milliseconds on an idle machine
		maxMemory = 200 << 20        // bytes of the heap above those before
		minFiles  = 120
	)
	if underRace {
		t.Skip("too slow with the race detector; a reader has no goroutines")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(50)) // the heap is what is used, not what is garbage
	files := hostileFiles(t)
	if len(files) < minFiles {
		t.Errorf("%d files, want at least %d", len(files), minFiles)
	}
	r := reader.New(reader.Config{})
	var slowest time.Duration
	var largest uint64
	var slow, large string
	problems := map[document.Problem]int{}
	for _, f := range files {
		runtime.GC()
		stop, peak := watchHeap()
		start := time.Now()
		d, err := r.Read(t.Context(), bytes.NewReader(f.body), document.Default())
		took := time.Since(start)
		close(stop)
		used := <-peak
		problem := document.Problem("none")
		if err != nil {
			problem, _ = document.ProblemOf(err)
		} else if d.Problem != "" {
			problem = d.Problem
		}
		problems[problem]++
		var known *document.Error
		switch {
		case (d == nil) == (err == nil), err != nil && !errors.As(err, &known):
			t.Errorf("%s: document %v, error %v", f.name, d, err)
		case problem == document.Crashed:
			t.Errorf("%s: %v", f.name, err)
		case f.want != "" && problem != f.want:
			detail := fmt.Sprint(err)
			if d != nil {
				detail = d.Detail
			}
			t.Errorf("%s: problem %s (%s), want %s", f.name, problem, detail, f.want)
		case took > maxTime, used > maxMemory:
			t.Errorf("%s: took %v and %d MiB", f.name, took, used>>20)
		}
		if took > slowest {
			slowest, slow = took, f.name
		}
		if used > largest {
			largest, large = used, f.name
		}
	}
	t.Logf("%d files, problems %v; slowest %v (%s), most memory %d MiB (%s)", len(files), problems,
		slowest.Round(time.Millisecond), slow, largest>>20, large)
}

// watchHeap measures how much the heap grows until stop is closed.
func watchHeap() (stop chan struct{}, peak chan uint64) {
	stop, peak = make(chan struct{}), make(chan uint64, 1)
	heap := func() uint64 {
		s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	before := heap()
	go func() {
		most := uint64(0)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			most = max(most, heap())
			select {
			case <-stop:
				peak <- max(most, before) - before
				return
			case <-tick.C:
			}
		}
	}()
	return stop, peak
}

// A hostileFile is a file with the problem that it must have; "" if any will do.
type hostileFile struct {
	name string
	body []byte
	want document.Problem
}

// parts are the entries of an archive.
type parts []part

type part struct {
	name, content string
	times         int // how often content is repeated; 0: once
}

func (p parts) zip(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, e := range p {
		w, err := z.Create(e.name)
		for range max(e.times, 1) {
			if err == nil {
				_, err = io.WriteString(w, e.content)
			}
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

// with returns the parts with an entry replaced or added.
func (p parts) with(name, content string, times int) parts {
	var out parts
	for _, e := range p {
		if e.name != name {
			out = append(out, e)
		}
	}
	return append(out, part{name, content, times})
}

const (
	relations = `<Relationships xmlns:r="relationships">`
	typesPart = "[Content_Types].xml"
)

func relation(id, kind, target string) string {
	return fmt.Sprintf(`<Relationship Id="%s" Type="x/relationships/%s" Target="%s"/>`, id, kind, target)
}

func rootRels(main string) part {
	return part{"_rels/.rels", relations + relation("m", "officeDocument", main) +
		relation("c", "core-properties", "docProps/core.xml") + "</Relationships>", 1}
}

const (
	wordText = `<w:p xmlns:w="w"><w:r><w:t>text</w:t></w:r></w:p>`
	openText = `<text:p xmlns:text="t">text</text:p>`
	rNS      = ` xmlns:r="x/relationships"`
)

func wordParts(body string) parts {
	return parts{{typesPart, "<Types/>", 1}, rootRels("word/document.xml"),
		{"word/_rels/document.xml.rels", relations + relation("s", "styles", "styles.xml") + relation("f",
			"footnotes", "f.xml") +
			relation("c", "comments", "c.xml") + "</Relationships>", 1},
		{"word/document.xml", `<w:document xmlns:w="w"><w:body>` + body + `</w:body></w:document>`, 1}}
}

func slideParts(ids, slide string) parts {
	return parts{{typesPart, "<Types/>", 1}, rootRels("ppt/presentation.xml"),
		{"ppt/_rels/presentation.xml.rels", relations + relation("s", "slide", "s.xml") + "</Relationships>", 1},
		{"ppt/presentation.xml", `<p:presentation xmlns:p="p"` + rNS + `>` + ids + `</p:presentation>`, 1},
		{"ppt/_rels/s.xml.rels", relations + relation("n", "notesSlide", "s.xml") + relation("l", "slide", "s.xml") +
			"</Relationships>", 1}, {"ppt/s.xml", slide, 1}}
}

func sheetParts(sheets, sheet string) parts {
	return parts{{typesPart, "<Types/>", 1}, rootRels("xl/workbook.xml"),
		{"xl/_rels/workbook.xml.rels", relations + relation("s", "worksheet", "s.xml") + relation("t",
			"sharedStrings", "t.xml") +
			relation("y", "styles", "y.xml") + "</Relationships>", 1},
		{"xl/workbook.xml", `<workbook` + rNS + `>` + sheets + `</workbook>`, 1}, {"xl/s.xml", "<sheet>" +
			sheet + "</sheet>", 1}}
}

func openParts(kind, body string) parts {
	return parts{{"mimetype", "application/vnd.oasis.opendocument." + kind, 1}, {"content.xml",
		`<office:document-content ` +
			`xmlns:office="o" xmlns:text="t" xmlns:table="ta" xmlns:draw="d"><office:body>` + body +
			`</office:body></office:document-content>`, 1}}
}

func bookParts(spine, chapter string) parts {
	return parts{{"mimetype", "application/epub+zip", 1},
		{"META-INF/container.xml", `<container><rootfile full-path="b.opf"/></container>`, 1},
		{"b.opf", `<package><manifest><item id="a" href="a.xhtml"/></manifest><spine>` + spine + `</spine></package>`, 1},
		{"a.xhtml", chapter, 1}}
}

const (
	oneSlide = `<p:sldId id="1" r:id="s"/>`
	oneSheet = `<sheet name="x" r:id="s"/>`
	oneRef   = `<itemref idref="a"/>`
)

// ordinary returns a small file of each kind.
func ordinary() map[string]parts {
	return map[string]parts{"docx": wordParts(strings.Repeat(wordText, 20)),
		"pptx": slideParts(oneSlide, `<sld xmlns:a="a"><sp><txBody><a:p><a:r><a:t>text</a:t></a:r></a:p
></txBody></sp></sld>`),
		"xlsx": sheetParts(oneSheet, `<row r="1"><c r="A1" t="inlineStr"><is><t>text</t></is></c><c><v>1</v></c></row>`),
		"odt":  openParts("text", openText), "odp": openParts("presentation", "<draw:page>"+openText+"</draw:page>"),
		"ods": openParts("spreadsheet", `<table:table table:name="x"><table:table-row><table:table-cell>`+openText+
			`</table:table-cell></table:table-row></table:table>`),
		"epub": bookParts(oneRef, "<h1>One</h1><p>text")}
}

func hostileFiles(t testing.TB) (files []hostileFile) {
	add := func(name string, body []byte, want document.Problem) {
		files = append(files, hostileFile{name, body, want})
	}
	add1 := func(name string, p parts, want document.Problem) { add(name, p.zip(t), want) }
	const laughs = `<!DOCTYPE x [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c
"&b;&b;&b;&b;">]><document>&c;</document>`
	many := func(s string, n int) string { return strings.Repeat(s, n) }
	main := map[string]string{"docx": "word/document.xml", "pptx": "ppt/s.xml", "xlsx": "xl/s.xml", "odt": "content.xml",
		"odp": "content.xml", "ods": "content.xml", "epub": "a.xhtml"}
	samples := map[string][]byte{}
	for kind, p := range ordinary() {
		samples[kind] = p.zip(t)
		add("ordinary "+kind, samples[kind], "none")
		name := main[kind]
		add1("ratio of "+kind, p.with(name, many(" ", 1<<20), 3), document.TooLarge)
		add1("nested archive in "+kind, p.with(name, string(samples[kind]), 1), "")
		add1("no "+name+" in "+kind, p.with(name, "", 1), "")
		add1("two of "+kind, append(p.with(name, "<document/>", 1), part{name, "<y/>", 1}), document.Broken)
		if kind != "epub" { // HTML has no entities of its own, and no limit of depth that is an error
			add1("laughs of "+kind, p.with(name, laughs, 1), document.Broken)
			add1("depth of "+kind, p.with(name, "<document>", 100_000), document.TooLarge)
		}
		add1("attributes of "+kind, p.with(name, "<x "+many(`a="b" `, 100_000)+"/>", 1), "")
		add1("a comment of "+kind, p.with(name, "<!-- "+many("0123456789abcdef", 1<<12), 150), "")
	}
	for kind, names := range map[string][]string{"docx": {"word/styles.xml", "word/f.xml", "word/c.xml",
		"docProps/core.xml",
		"_rels/.rels", "word/_rels/document.xml.rels"}, "xlsx": {"xl/t.xml", "xl/y.xml", "xl/workbook.xml"},
		"odt": {"meta.xml", "META-INF/manifest.xml", "mimetype"}, "epub": {"b.opf", "META-INF/container.xml",
			"META-INF/encryption.xml", "mimetype"}} {
		for _, name := range names {
			add1("ratio of "+name, ordinary()[kind].with(name, "<x/>"+many(" ", 1<<16), 40), "")
			add1("laughs of "+name, ordinary()[kind].with(name, laughs, 1), "")
		}
	}
	add1("relations", wordParts(wordText).with("word/_rels/document.xml.rels", relations+many(relation("q",
		"x", "y"), 200_000), 1), "")
	add1("self", slideParts(oneSlide, `<sld`+rNS+`><relIds r:dm="l"/><chart r:id="l"/></sld>`), "")
	add1("slides", slideParts(many(oneSlide, 100_000), `<sld xmlns:a="a"><a:p><a:r><a:t>text</a:t></a:r></a:p></sld>`),
		document.TooLarge)
	add1("sheets", sheetParts(many(oneSheet, 100_000), ""), document.TooLarge)
	add1("chapters", bookParts(many(oneRef, 100_000), "<p>text"), "")
	add1("large chapter", bookParts(many(oneRef, 100), many("<p>0123456789", 300_000)), document.TooLarge)
	add1("chapter of tags", bookParts(oneRef, many("<b>", 300_000)), document.TooLarge)
	add1("chapter of tables", bookParts(oneRef, many("<table><tr><td>", 100_000)), "")
	add1("main is a relation", parts{{typesPart, "<Types/>", 1}, rootRels("_rels/.rels")}, document.Unsupported)
	add1("styles in a circle", wordParts(`<w:p><w:pPr><w:pStyle w:val="a"/></w:pPr></w:p
>`+wordText).with("word/styles.xml",
		`<w:styles xmlns:w="w"><w:style w:type="paragraph" w:styleId="a"><w:basedOn w:val="a"/></w:style
></w:styles>`, 1), "none")
	add1("empty paragraphs", wordParts("").with("word/document.xml", "<document><body>"+many("<p/>",
		500_000), 1), document.TooLarge)
	add1("tags with few blocks", wordParts("").with("word/document.xml", "<document><body>"+randomTags(8<<20), 1), "")
	add1("paragraphs", wordParts(many(wordText, 250_000)), document.TooLarge)
	add1("fields", wordParts("<w:p><w:r>"+many(`<w:fldChar w:fldCharType="begin"/><w:instrText
>HYPERLINK</w:instrText>`, 100_000)+
		"</w:r></w:p>"), "")
	add1("links", wordParts(many(`<w:p><w:fldSimple w:instr="HYPERLINK &quot;https://example.org/&quot;"
><w:r><w:t>x</w:t></w:r>`+
		`</w:fldSimple></w:p>`, 30_000)), document.TooLarge)
	add1("notes", wordParts(many(`<w:p><w:r><w:footnoteReference w:id="1"/></w:r></w:p>`, 100_000)).with("word/f.xml",
		`<w:footnotes xmlns:w="w"><w:footnote w:id="1"><w:p><w:r><w:t>`+many("long ", 100_000)+`</w:t></w:r
></w:p></w:footnote></w:footnotes>`,
		1), "")
	add1("tables in tables", wordParts(many("<w:tbl><w:tr><w:tc>"+wordText+"</w:tc><w:tc>", 80)), "")
	add1("cells", wordParts("<w:tbl><w:tr>"+many("<w:tc><w:p/></w:tc>", 300_000)+"</w:tr></w:tbl>"), "")
	add1("shared string", sheetParts(oneSheet, "<row>"+many(`<c t="s"><v>0</v></c>`, 300_000)+"</row>").with("xl/t.xml",
		"<sst><si><t>"+randomWords(1<<20)+"</t></si></sst>", 1), document.TooLarge)
	add1("strings", sheetParts(oneSheet, "").with("xl/t.xml", "<sst>"+many("<si><t>x</t></si>", 1_001_000),
		1), document.TooLarge)
	add1("rows", sheetParts(oneSheet, many("<row><c><v>1</v></c></row>", 250_000)), document.TooLarge)
	add1("columns", sheetParts(oneSheet, many(`<row><c r="XFD1"><v>1</v></c></row>`, 100_000)), "")
	add1("repeated cells", openParts("spreadsheet", many(`<table:table-row><table:table-cell
table:number-columns-repeated="2147483647">`+
		`<text:p>`+many("word ", 2000)+`</text:p></table:table-cell></table:table-row>`, 2000)), document.TooLarge)
	add1("repeated empty cells", openParts("spreadsheet", many(`<table:table-row><table:table-cell `+
		`table:number-columns-repeated="64"/><table:table-cell><text:p>x</text:p></table:table-cell
></table:table-row>`, 150_000)), "")
	add1("notes in notes", openParts("text", many("<text:p>x<text:note><text:note-body>", 80)), "")
	add1("lists", openParts("text", many("<text:list><text:list-item>", 100)+openText), "")
	entries := wordParts(wordText)
	for i := range 30_000 {
		entries = append(entries, part{fmt.Sprintf("word/%d.xml", i), "", 1})
	}
	add1("entries", entries, document.TooLarge)
	add("overlapping entries", overlapping(t), "")
	add("endless directory", endless(), document.TooLarge)
	images := hostileImages()
	files = append(files, images...)
	for _, kind := range []string{"docx", "pptx", "xlsx", "odt", "odp", "ods", "epub"} {
		body := samples[kind]
		for i := range 4 {
			add(fmt.Sprintf("%s cut at %d/5", kind, i+1), body[:len(body)*(i+1)/5], document.Broken)
		}
		for seed := range uint64(5) {
			add(fmt.Sprintf("%s damaged by seed %d", kind, seed), damaged(body, seed), "")
		}
	}
	for _, image := range images {
		for seed := range uint64(2) {
			add(fmt.Sprintf("%s, damaged by seed %d", image.name, seed), damaged(image.body, seed), "")
		}
	}
	return files
}

// damaged returns a file with bytes that are changed at random.
func damaged(body []byte, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	out := bytes.Clone(body)
	for range 1 + len(out)/200 {
		out[r.IntN(len(out))] = byte(r.Uint32())
	}
	return out
}

// randomTags returns elements that cannot be compressed much.
func randomTags(size int) string {
	r := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for b.Len() < size {
		fmt.Fprintf(&b, "<t%d/>", r.Uint64())
	}
	return b.String()
}

func randomWords(size int) string {
	r := rand.New(rand.NewPCG(1, 3))
	var b strings.Builder
	for b.Len() < size {
		fmt.Fprintf(&b, "%d ", r.Uint64())
	}
	return b.String()
}

// overlapping returns a document with 10,000 entries that share the same compressed bytes.
func overlapping(t testing.TB) []byte {
	body := wordParts("").with("word/document.xml", many8(), 1).zip(t)
	at := bytes.LastIndex(body, []byte("PK\x01\x02"))
	end := bytes.LastIndex(body, []byte("PK\x05\x06"))
	header, tail := body[at:end], bytes.Clone(body[end:])
	n := int(binary.LittleEndian.Uint16(tail[10:])) + 10_000
	out := bytes.Clone(body[:end])
	for range 10_000 {
		out = append(out, header...)
	}
	binary.LittleEndian.PutUint16(tail[8:], uint16(n))
	binary.LittleEndian.PutUint16(tail[10:], uint16(n))
	binary.LittleEndian.PutUint32(tail[12:], binary.LittleEndian.Uint32(tail[12:])+uint32(10_000*len(header)))
	return append(out, tail...)
}

func many8() string { return "<document><body>" + strings.Repeat(wordText, 1000) + "</body></d>" }

// endless returns an archive whose directory has more entries than it declares.
func endless() []byte {
	header := append([]byte("PK\x01\x02"), make([]byte, 42)...)
	out := []byte("PK\x03\x04")
	start := len(out)
	for range 300_000 {
		out = append(out, header...)
	}
	end := append([]byte("PK\x05\x06"), make([]byte, 18)...)
	binary.LittleEndian.PutUint16(end[8:], 1)
	binary.LittleEndian.PutUint16(end[10:], 1)
	binary.LittleEndian.PutUint32(end[12:], uint32(len(out)-start))
	binary.LittleEndian.PutUint32(end[16:], uint32(start))
	return append(out, end...)
}

func pngChunk(kind, body string) string {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	out = append(append(out, kind...), body...)
	return string(binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[4:])))
}

func hostileImages() []hostileFile {
	var bomb bytes.Buffer
	z := zlib.NewWriter(&bomb)
	for range 32 {
		_, _ = z.Write(bytes.Repeat([]byte("00"), 1<<19))
	}
	_ = z.Close()
	png := func(chunks ...string) []byte {
		return []byte("\x89PNG\r\n\x1A\n" + pngChunk("IHDR", "\x00\x00\x00\x40\x00\x00\x00\x20\x08\x02\x00\x00\x00") +
			strings.Join(chunks, "") + pngChunk("IEND", ""))
	}
	loop := []byte("II*\x00\x08\x00\x00\x00" + "\x02\x00" + // an IFD with a pointer to itself, which is also the next one
		"\x69\x87\x04\x00\x01\x00\x00\x00\x08\x00\x00\x00" +
		"\x0F\x01\x02\x00\xFF\xFF\xFF\xFF\x08\x00\x00\x00" + "\x08\x00\x00\x00")
	segment := func(marker byte, body string) string {
		return string([]byte{0xFF, marker, byte((len(body) + 2) >> 8), byte(len(body) + 2)}) + body
	}
	xmp := "http://ns.adobe.com/xap/1.0/\x00"
	box := func(kind, body string) string {
		return string(binary.BigEndian.AppendUint32(nil, uint32(len(body)+8))) + kind + body
	}
	const most = "\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF"
	iloc := "\x00\x00\x00\x00\x88\x80\x00\x01\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01" +
		"\x00\x00\x00\x00\x00\x00\x00\x40" +
		most
	infe := box("infe", "\x02\x00\x00\x00\x00\x01\x00\x00Exif\x00")
	heif := box("ftyp", "heic\x00\x00\x00\x00mif1heic") + box("meta", "\x00\x00\x00\x00"+
		box("iinf", "\x00\x00\x00\x00\x00\x01"+infe)+box("iloc", iloc)) + strings.Repeat("\x00", 100)
	return []hostileFile{
		{"png: IPTC bomb", png(pngChunk("zTXt", "Raw profile type iptc\x00\x00"+bomb.String())), ""},
		{"png: text bomb", png(pngChunk("zTXt", "Title\x00\x00"+bomb.String())), ""},
		{"png: XMP bomb", png(pngChunk("iTXt", "XML:com.adobe.xmp\x00\x01\x00\x00\x00"+bomb.String())), ""},
		{"png: chunks", png(strings.Repeat(pngChunk("tEXt", ""), 400_000)), document.TooLarge},
		{"png: long chunk", png("\xFF\xFF\xFF\xFFeXIf"), document.Broken},
		{"tiff: loop", loop, ""},
		{"jpeg: loop in EXIF", []byte("\xFF\xD8" + segment(0xE1, "Exif\x00\x00"+string(loop))), ""},
		{"jpeg: segments", []byte("\xFF\xD8" + strings.Repeat(segment(0xE1, "Exif\x00\x00"), 300_000)), ""},
		{"jpeg: deep XMP", []byte("\xFF\xD8" + segment(0xE1, xmp+strings.Repeat("<x>", 20_000))), ""},
		{"jpeg: laughs in XMP", []byte("\xFF\xD8" + segment(0xE1, xmp+`<!DOCTYPE x [<!ENTITY a "&a;&a;">]><x>&a;</x>`)), ""},
		{"heif: endless item", []byte(heif), ""},
		{"heif: boxes", []byte(box("ftyp", "heic\x00\x00\x00\x00mif1heic") + strings.Repeat(box("free", ""), 1_000_000)), ""},
		{"webp: cut", []byte("RIFF" +
			"\xFF\xFF\xFF\xFFWEBPVP8X\x0A\x00\x00\x00\x0C\x00\x00\x00\xFF\xFF\xFF\xFF\xFF\xFFEXIF\xFF\xFF\xFF\xFF"), ""},
		{"gif: cut", []byte("GIF89a\x40"), document.Broken},
	}
}

//go:build (amd64 || arm64) && (linux || darwin || windows || freebsd)

package pdf

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"kumo/internal/content/document"
	"kumo/internal/content/document/worker"
)

// TestHostile reads files that are made to crash a reader, to run forever or to fill the memory. Each ends in time,
// within the limits, and afterwards an ordinary file can be read.
func TestHostile(t *testing.T) {
	const (
		limit = 500 * time.Millisecond // after which Read is to stop by itself
		slack = 20 * time.Second
	)
	w := worker.New(worker.Config{Command: []string{os.Args[0], "child"}, CacheDir: cacheDir, Deadline: limit,
		Grace: limit, Memory: 256 << 20})
	defer w.Close()
	lim := document.Default()
	lim.Text, lim.Links, lim.Pages = 256<<10, 1000, 200
	counts := map[document.Problem]int{}
	files := hostileFiles(t)
	if len(files) < 80 {
		t.Errorf("%d files, want 80", len(files))
	}
	for name, data := range files {
		begin := time.Now()
		d, err := w.Read(t.Context(), bytes.NewReader(data), lim)
		took := time.Since(begin)
		if took > limit+slack {
			t.Errorf("%s took %s", name, took)
		}
		if took > time.Second {
			t.Logf("%s took %s", name, took)
		}
		if err != nil {
			p, detail := document.ProblemOf(err)
			counts[p]++
			if detail == "" {
				t.Errorf("%s: no detail of the problem %s", name, p)
			}
			continue
		}
		counts[d.Problem]++
		if n := len(d.Plain()); n > lim.Text+4<<10 || len(d.Links) > lim.Links {
			t.Errorf("%s: %d bytes of text, %d links", name, n, len(d.Links))
		}
	}
	t.Logf("problems of %d files: %v; %d processes", len(files), counts, w.Started())
	if counts[document.Crashed] > 0 {
		t.Errorf("%d files ended the process", counts[document.Crashed])
	}
	for try := 1; ; try++ {
		d, err := w.Read(t.Context(), bytes.NewReader(page(show(72, 700, 12, "Ordinary"), "", "", "<<>>")), lim)
		if err == nil && d.Plain() == "Ordinary" {
			break
		}
		if p, _ := document.ProblemOf(err); try == 10 || err != nil && p != document.Timeout { // the machine may be busy
			t.Fatalf("afterwards an ordinary file gives %+v, %v", d, err)
		}
	}
}

func hostileFiles(t *testing.T) map[string][]byte {
	t.Helper()
	ordinary := page(show(72, 700, 12, "Text of a page", "and another line"), "/Lang(en)", "", "<</Title(T)>>")
	one := func(objects ...string) []byte { return file(append(objects, "<<>>")...) }
	const font = "/Resources<</Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>"
	onePage := func(entries string, more ...string) []byte {
		return one(append([]string{"<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
			"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]" + font + entries + ">>"}, more...)...)
	}
	deflated := func(s string, times int) string {
		var b bytes.Buffer
		w := zlib.NewWriter(&b)
		for range times {
			_, _ = w.Write([]byte(s))
		}
		_ = w.Close()
		return b.String()
	}
	twice := func(s string) string { return deflated(s, 1) }
	spaces := strings.Repeat(" ", 1<<20)
	files := map[string][]byte{
		"no objects":           []byte("%PDF-1.7\nxref\n0 0\ntrailer<<>>\nstartxref\n9\n%%EOF"),
		"only a header":        []byte("%PDF-1.7\n"),
		"xref points to xref":  []byte("%PDF-1.7\nxref\n0 1\n0000000000 65535 f \ntrailer<</Size 1/Prev 9>>\nstartxref\n9\n%%EOF"),
		"xref beyond the end":  bytes.Replace(ordinary, []byte("startxref\n"), []byte("startxref\n9999"), 1),
		"huge xref":            bytes.Replace(ordinary, []byte("xref\n0 "), []byte("xref\n0 99999999"), 1),
		"negative xref":        bytes.Replace(ordinary, []byte("xref\n0 "), []byte("xref\n-5 "), 1),
		"root is missing":      bytes.Replace(ordinary, []byte("/Root 1 0 R"), []byte("/Root 99 0 R"), 1),
		"root is itself":       one("1 0 R"),
		"pages are the root":   one("<</Type/Catalog/Pages 1 0 R/Kids[1 0 R]/Count 5>>"),
		"pages loop":           one("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[2 0 R 2 0 R 2 0 R]/Count 1000000>>"),
		"pages loop by two":    one("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R 3 0 R]/Count 9>>", "<</Type/Pages/Kids[2 0 R 2 0 R]/Count 9>>"),
		"parents loop":         one("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1/Parent 3 0 R>>", "<</Type/Page/Parent 2 0 R>>"),
		"count is huge":        one("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 2147483647>>", "<</Type/Page/Parent 2 0 R>>"),
		"count is negative":    one("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count -1>>", "<</Type/Page/Parent 2 0 R>>"),
		"length is huge":       bytes.Replace(ordinary, []byte("/Length "), []byte("/Length 99999999"), 1),
		"length is itself":     onePage("/Contents 4 0 R", "<</Length 4 0 R>>\nstream\nx\nendstream"),
		"contents loop":        onePage("/Contents 4 0 R", "[4 0 R 4 0 R]"),
		"many contents":        onePage("/Contents["+strings.Repeat("4 0 R ", 50_000)+"]", stream("", show(72, 700, 12, "x"))),
		"form draws itself":    onePage("/Contents 5 0 R/Resources<</XObject<</X 4 0 R>>>>", stream("/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 4 0 R>>>>", "/X Do /X Do"), stream("", "/X Do")),
		"no media box":         one("<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>", "<</Type/Page/Parent 2 0 R>>"),
		"huge media box":       onePage("/MediaBox[-1e38 -1e38 1e38 1e38]/Contents 4 0 R", stream("", show(72, 700, 12, "x"))),
		"NaN media box":        onePage("/MediaBox[nan 0 0 (x)]/Contents 4 0 R", stream("", show(72, 700, 12, "x"))),
		"user unit":            onePage("/UserUnit 1e30/Contents 4 0 R", stream("", show(72, 700, 12, "x"))),
		"font size":            onePage("/Contents 4 0 R", stream("", "BT /F1 1e38 Tf 1e38 1e38 Td (x) Tj (y) Tj ET")),
		"deep arrays":          onePage("/Contents 4 0 R/X "+strings.Repeat("[", 100_000), stream("", "x")),
		"deep dictionaries":    onePage("/X " + strings.Repeat("<</A ", 50_000)),
		"deep content":         onePage("/Contents 4 0 R", stream("", strings.Repeat("q ", 300_000)+show(72, 700, 12, "x"))),
		"deep arrays as text":  onePage("/Contents 4 0 R", stream("", "BT /F1 12 Tf "+strings.Repeat("[", 100_000)+" TJ ET")),
		"unclosed string":      onePage("/Contents 4 0 R", stream("", "BT /F1 12 Tf ("+strings.Repeat("(", 200_000))),
		"long line":            onePage("/Contents 4 0 R", stream("", show(72, 700, 12, strings.Repeat("x", 1<<20)))),
		"many words":           onePage("/Contents 4 0 R", stream("", "BT /F1 12 Tf "+strings.Repeat("1 0 Td (x) Tj ", 50_000)+"ET")),
		"many lines":           onePage("/Contents 4 0 R", stream("", "BT /F1 12 Tf "+strings.Repeat("0 -2 Td (a line) Tj ", 20_000)+"ET")),
		"deflate bomb":         onePage("/Contents 4 0 R", stream("/Filter/FlateDecode", deflated(spaces, 300))),
		"deflate bomb twice":   onePage("/Contents 4 0 R", stream("/Filter[/FlateDecode/FlateDecode]", twice(deflated(spaces, 300)))),
		"deflate bomb of text": onePage("/Contents 4 0 R", stream("/Filter/FlateDecode", deflated(show(72, 700, 12, "a line of the bomb"), 200_000))),
		"run length bomb":      onePage("/Contents 4 0 R", stream("/Filter/RunLengthDecode", strings.Repeat("\x81 ", 500_000))),
		"many filters":         onePage("/Contents 4 0 R", stream("/Filter["+strings.Repeat("/ASCIIHexDecode", 5000)+"]", "41>")),
		"unknown filter":       onePage("/Contents 4 0 R", stream("/Filter/NoSuchDecode", "x")),
		"broken deflate":       onePage("/Contents 4 0 R", stream("/Filter/FlateDecode", "\x78\x9c\xff\xff\xff")),
		"predictor":            onePage("/Contents 4 0 R", stream("/Filter/FlateDecode/DecodeParms<</Predictor 15/Columns 2147483647/Colors 32>>", deflated("x", 100))),
		"huge image":           onePage("/Contents 5 0 R/Resources<</XObject<</X 4 0 R>>>>", stream("/Type/XObject/Subtype/Image/Width 2000000000/Height 2000000000/BitsPerComponent 8/ColorSpace/DeviceRGB", "x"), stream("", "/X Do")),
		"annotations loop":     onePage("/Annots 4 0 R", "[4 0 R 4 0 R]"),
		"many annotations":     onePage("/Annots["+strings.Repeat("4 0 R ", 30_000)+"]", "<</Type/Annot/Subtype/Link/Rect[0 0 9 9]/A<</S/URI/URI(http://example.com/)>>>>"),
		"long URI":             onePage("/Annots[4 0 R]", "<</Type/Annot/Subtype/Link/Rect[0 0 9 9]/A<</S/URI/URI(http://example.com/"+strings.Repeat("x", 1<<20)+")>>>>"),
		"form fields loop":     one("<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[4 0 R]>>>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>", "<</Type/Page/Parent 2 0 R/Annots[4 0 R]>>", "<</Type/Annot/Subtype/Widget/FT/Tx/Kids[4 0 R]/Parent 4 0 R/T(x)/V(y)>>"),
		"script":               one("<</Type/Catalog/Pages 2 0 R/OpenAction<</S/JavaScript/JS(while\\(true\\){})>>>>", "<</Type/Pages/Kids[]/Count 0>>"),
		"names loop":           one("<</Type/Catalog/Pages 2 0 R/Names<</EmbeddedFiles 4 0 R>>>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>", "<</Type/Page/Parent 2 0 R>>", "<</Kids[4 0 R 4 0 R]>>"),
		"XMP is deep":          onePage("/X 4 0 R", stream("/Type/Metadata/Subtype/XML", "<rdf:RDF>"+strings.Repeat("<a>", 100_000)+"</rdf:RDF>")),
		"XMP without end":      onePage("/X 4 0 R", stream("/Type/Metadata/Subtype/XML", "<rdf:RDF>"+strings.Repeat("<dc:title>", 100_000))),
		"XMP entities":         onePage("/X 4 0 R", stream("/Type/Metadata/Subtype/XML", "<!DOCTYPE x [<!ENTITY a \"&a;&a;\">]><rdf:RDF><rdf:Description>&a;</rdf:Description></rdf:RDF>")),
		"CMap is huge": onePage("/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>", stream("", show(72, 700, 12, "xyz")),
			"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 6 0 R>>",
			stream("", "begincmap 1 beginbfrange <00000000> <FFFFFFFF> <0000> endbfrange endcmap")),
		"encrypted, broken": bytes.Replace(ordinary, []byte("/Root 1 0 R"),
			[]byte("/Root 1 0 R/Encrypt<</Filter/Standard/V 5/R 6/Length 99999/O(x)/U(y)/P 1>>"), 1),
		"encrypted by itself":  bytes.Replace(ordinary, []byte("/Root 1 0 R"), []byte("/Root 1 0 R/Encrypt 1 0 R"), 1),
		"object stream is own": onePage("/Contents 9 0 R", stream("/Type/ObjStm/N 1000000/First 10/Extends 4 0 R", "4 0 5 0 <<>>")),
		"xref stream": []byte("%PDF-1.5\n1 0 obj<</Type/XRef/Size 2147483647/W[8 8 8]/Index[0 2147483647]/Root 1 0 R/Length 3>>" +
			"stream\nabc\nendstream endobj\nstartxref\n9\n%%EOF"),
	}
	// 100,000 pages, in one list and in a chain
	var kids strings.Builder
	objects := []string{"<</Type/Catalog/Pages 2 0 R>>", ""}
	for i := range 100_000 {
		fmt.Fprintf(&kids, "%d 0 R ", i+3)
		objects = append(objects, "<</Type/Page/Parent 2 0 R>>")
	}
	objects[1] = "<</Type/Pages/Count 100000/Kids[" + kids.String() + "]>>"
	files["100,000 pages"] = one(objects...)
	objects = objects[:1]
	for i := range 5_000 {
		objects = append(objects, fmt.Sprintf("<</Type/Pages/Count 1/Kids[%d 0 R]>>", i+3))
	}
	files["deep pages"] = one(append(objects, "<</Type/Page>>")...)
	for i := range 10 {
		files[fmt.Sprintf("cut %d", i)] = ordinary[:len(ordinary)*(i+1)/11]
	}
	seed := uint64(time.Now().UnixNano()) //nolint:gosec // any will do
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // reproducible by the seed
	for i := range 40 {
		data := bytes.Clone(ordinary)
		for range 1 + random.IntN(30) {
			switch at := random.IntN(len(data)); random.IntN(3) {
			case 0:
				data[at] = byte(random.IntN(256))
			case 1:
				data[at] = "0123456789<>[]()/ R"[random.IntN(19)]
			default:
				n := min(random.IntN(40), len(data)-at)
				copy(data[random.IntN(len(data)-n):], data[at:at+n])
			}
		}
		files[fmt.Sprintf("fuzzed %d", i)] = data
	}
	return files
}

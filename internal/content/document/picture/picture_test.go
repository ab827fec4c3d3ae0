package picture_test

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"kumo/internal/content/document"
	"kumo/internal/content/document/picture"
)

const packet = `<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xmp="http://ns.adobe.com/xap/1.0/"
 xmlns:plus="http://ns.useplus.org/ldf/xmp/1.0/" xmlns:xmpRights="http://ns.adobe.com/xap/1.0/rights/"
 xmp:CreateDate="2021-05-06T07:08:09+02:00" xmpRights:WebStatement="https://example.org/licence">
<dc:title><rdf:Alt><rdf:li xml:lang="x-default">A lighthouse</rdf:li>
<rdf:li xml:lang="de">Ein Leuchtturm</rdf:li></rdf:Alt>
</dc:title><dc:creator><rdf:Seq><rdf:li>N. N.</rdf:li><rdf:li>M. M.</rdf:li></rdf:Seq></dc:creator>
<plus:DataMining>http://ns.useplus.org/ldf/vocab/DMI-PROHIBITED</plus:DataMining>
</rdf:Description></rdf:RDF></x:xmpmeta>`

// ascii returns a TIFF file with text tags, which must be longer than 3 bytes. It is also what EXIF consists of.
func ascii(tags map[uint16]string) []byte {
	var ids []uint16
	for id := range tags {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	le := binary.LittleEndian
	out := append([]byte("II*\x00"), 8, 0, 0, 0)
	out = le.AppendUint16(out, uint16(len(ids)))
	at := 8 + 2 + 12*len(ids) + 4
	var values []byte
	for _, id := range ids {
		v := tags[id] + "\x00"
		out = le.AppendUint16(le.AppendUint16(out, id), 2)
		out = le.AppendUint32(le.AppendUint32(out, uint32(len(v))), uint32(at+len(values)))
		values = append(values, v...)
	}
	return append(le.AppendUint32(out, 0), values...)
}

func segment(marker byte, body string) string {
	return string([]byte{0xFF, marker, byte((len(body) + 2) >> 8), byte(len(body) + 2)}) + body
}

func iptcRecord(id byte, value string) string {
	return string([]byte{0x1C, 2, id, byte(len(value) >> 8), byte(len(value))}) + value
}

func jpeg(parts ...string) []byte {
	size := segment(0xC0, "\x08\x00\x20\x00\x40\x01\x01\x11\x00")
	return []byte("\xFF\xD8" + strings.Join(parts, "") + size + segment(0xDA, "\x01\x01\x00\x00\x3F\x00") + "\x00\xFF\xD9")
}

func chunk(kind, body string) string {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	out = append(append(out, kind...), body...)
	return string(binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[4:])))
}

func png(chunks ...string) []byte {
	return []byte("\x89PNG\r\n\x1A\n" + chunk("IHDR", "\x00\x00\x00\x40\x00\x00\x00\x20\x08\x02\x00\x00\x00") +
		strings.Join(chunks, "") + chunk("IEND", ""))
}

func deflated(s string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	if _, err := w.Write([]byte(s)); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.String()
}

func samples() map[string][]byte {
	tiff := string(ascii(map[uint16]string{0x10F: "ACME Corp", 0x110: "Model 1", 0x13B: "E. E.", 0x8298: "(c) E. E.",
		0x10E: "A text", 0x132: "2020:01:02 03:04:05"}))
	records := iptcRecord(5, "From IPTC") + iptcRecord(80, "I. I.") + iptcRecord(116, "(c) I. I.")
	iptc :=
		"Photoshop 3.0\x008BIM\x04\x04\x00\x00" + string(binary.BigEndian.AppendUint32(nil, uint32(len(records)))) + records
	return map[string][]byte{
		"all.jpeg": jpeg(segment(0xE1, "Exif\x00\x00"+tiff),
			segment(0xE1, "http://ns.adobe.com/xap/1.0/\x00"+packet), segment(0xED, iptc)),
		"exif.jpeg":  jpeg(segment(0xE1, "Exif\x00\x00"+tiff)),
		"plain.jpeg": jpeg(),
		"xmp.png":    png(chunk("iTXt", "XML:com.adobe.xmp\x00\x00\x00\x00\x00"+packet), chunk("tEXt", "Author\x00J\xF6rg")),
		"text.png":   png(chunk("zTXt", "Title\x00\x00"+deflated("Packed")), chunk("tEXt", "Copyright\x00J\xF6rg")),
		"cut.png":    png()[:40],
		"a.gif":      []byte("GIF89a\x40\x00\x20\x00\x00\x00\x00;"),
		"lossy.webp": []byte("RIFF\x16\x00\x00\x00WEBPVP8 \x0A\x00\x00\x00\x00\x00\x00\x9D\x01\x2A\x40\x00\x20\x00"),
		"a.tiff":     []byte(tiff),
	}
}

func TestRead(t *testing.T) {
	type property = document.Property
	size := []property{{Name: "width", Value: "64"}, {Name: "height", Value: "32"}}
	camera := property{Name: "camera", Value: "ACME Corp Model 1"}
	rights := []property{{Name: "rights-url", Value: "https://example.org/licence"},
		{Name: "plus-data-mining", Value: "DMI-PROHIBITED"}}
	edited := document.Document{Title: "A lighthouse", Author: "N. N., M. M.", Published: "2021-05-06T07:08:09+02:00"}
	all := edited
	all.Format, all.Rights, all.Description, all.Modified = document.JPEG, "(c) I. I.", "A text", "2020-01-02"
	all.Properties = slices.Concat(size, []property{camera}, rights)
	taken := document.Document{Format: document.JPEG, Author: "E. E.", Rights: "(c) E. E.", Description: "A text",
		Modified: "2020-01-02", Properties: append(slices.Clone(size), camera)}
	tiff := taken
	tiff.Format, tiff.Properties = document.TIFF, []property{camera}
	packed := edited
	packed.Format, packed.Properties = document.PNG, slices.Concat(size, rights)
	for name, want := range map[string]document.Document{
		"all.jpeg": all, "exif.jpeg": taken, "a.tiff": tiff, "xmp.png": packed,
		"plain.jpeg": {Format: document.JPEG, Properties: size},
		"text.png":   {Format: document.PNG, Title: "Packed", Rights: "Jörg", Properties: size},
		"a.gif":      {Format: document.GIF, Properties: size},
		"lossy.webp": {Format: document.WebP, Properties: size},
		"cut.png": {Format: document.PNG, Properties: size, Problem: document.Broken,
			Detail: "read png image: the image ends before its last chunk"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := picture.Read(bytes.NewReader(samples()[name]), document.Default())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestReadErrors(t *testing.T) {
	for body, want := range map[string]document.Problem{"": document.Unsupported, "%PDF-1.7": document.Unsupported,
		"\xFF\xD8\xFF\xE1": document.Broken, "\x89PNG\r\n\x1A\n": document.Broken, "GIF89a": document.Broken,
		"II*\x00\xFF\xFF\xFF\xFF": document.Broken} {
		d, err := picture.Read(strings.NewReader(body), document.Default())
		if p, _ := document.ProblemOf(err); err == nil || p != want {
			t.Errorf("%q is read as %+v, error %v, want %s", body, d, err, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, body := range samples() {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		d, err := picture.Read(bytes.NewReader(body), document.Default())
		var known *document.Error
		if (d == nil) == (err == nil) || err != nil && !errors.As(err, &known) {
			t.Fatalf("document %v, error %v of type %T", d, err, err)
		}
	})
}

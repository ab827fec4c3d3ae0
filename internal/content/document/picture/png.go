package picture

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"io"
	"strings"

	"kumo/internal/content/document"
)

// maxChunks is how many chunks of a PNG file are visited.
const maxChunks = 100_000

// png reads the size and the texts of a PNG file, XMP among them, which the library does not.
func (r *reader) png() error {
	head := make([]byte, 8)
	at := int64(len("\x89PNG\r\n\x1A\n"))
	for n := 0; ; n++ {
		if n == maxChunks {
			return document.Errorf(document.TooLarge, "the image has more than %d chunks", maxChunks)
		}
		if _, err := r.file.ReadAt(head, at); errors.Is(err, io.EOF) {
			return document.Errorf(document.Broken, "the image ends before its last chunk")
		} else if err != nil {
			return document.Errorf(document.Broken, "%w", err)
		}
		size, kind := int64(binary.BigEndian.Uint32(head)), string(head[4:])
		if kind == "IEND" {
			return nil
		}
		if kind == "IHDR" || (kind == "tEXt" || kind == "iTXt" || kind == "zTXt") && size <= maxXMP {
			body := make([]byte, min(size, maxXMP))
			if _, err := r.file.ReadAt(body, at+8); err != nil {
				return document.Errorf(document.Broken, "the image ends in a chunk %s", kind)
			}
			r.pngChunk(kind, body)
		}
		at += size + 12
	}
}

func (r *reader) pngChunk(kind string, body []byte) {
	if kind == "IHDR" {
		if len(body) >= 8 {
			r.width, r.height = int(binary.BigEndian.Uint32(body)), int(binary.BigEndian.Uint32(body[4:]))
		}
		return
	}
	key, rest, _ := bytes.Cut(body, []byte{0})
	compressed := kind == "zTXt"
	switch {
	case kind == "zTXt" && len(rest) > 0:
		rest = rest[1:]
	case kind == "iTXt" && len(rest) > 2:
		compressed = rest[0] == 1
		_, rest, _ = bytes.Cut(rest[2:], []byte{0}) // language
		_, rest, _ = bytes.Cut(rest, []byte{0})     // translated keyword
	}
	if compressed {
		z, err := zlib.NewReader(bytes.NewReader(rest))
		if err != nil {
			return
		}
		if rest, err = io.ReadAll(io.LimitReader(z, maxXMP)); err != nil {
			return
		}
	}
	text := string(rest)
	if kind != "iTXt" { // Latin-1
		var b strings.Builder
		for _, c := range rest[:min(len(rest), maxText)] {
			b.WriteRune(rune(c))
		}
		text = b.String()
	}
	d := &r.doc
	switch string(key) {
	case "XML:com.adobe.xmp":
		r.parseXMP([]byte(text))
	case "Title":
		r.set(&d.Title, iptc, text)
	case "Author":
		r.set(&d.Author, iptc, text)
	case "Copyright":
		r.set(&d.Rights, iptc, text)
	case "Description":
		r.set(&d.Description, iptc, text)
	}
}

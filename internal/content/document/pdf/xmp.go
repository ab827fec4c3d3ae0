package pdf

import (
	"bytes"
	"encoding/xml"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"kumo/internal/content/document"
)

// isCut reports whether the end of a file is missing.
func isCut(f document.File) bool {
	const tail = 8 << 10
	size := f.Size()
	head := make([]byte, min(size, 2048))
	n, _ := f.ReadAt(head, 0)
	// A file for the web ends its first part with the mark of the end, and states its length.
	if m := linearized.FindSubmatch(head[:n]); m != nil {
		if length, err := strconv.ParseInt(string(m[1]), 10, 64); err == nil && length > size {
			return true
		}
	}
	end := make([]byte, min(size, tail))
	n, _ = f.ReadAt(end, size-int64(len(end)))
	return !bytes.Contains(end[:n], []byte("%%EOF")) && !bytes.Contains(end[:n], []byte("startxref"))
}

var linearized = regexp.MustCompile(`/Linearized[^>]*?/L\s+(\d+)`)

// xmp is what a packet of XMP states.
type xmp struct {
	title, description, rights, lang, created, modified string
	license, reservation, policy                        string
	creators                                            []string
}

// packetOf returns the packet of XMP of a file: that of the document, which is the last one in most files that have
// several, because writers put it at the end and pictures' packets before. nil if there is none that is not compressed.
func packetOf(f document.File) []byte {
	const part, most = 1 << 20, 1 << 20
	begin, mark := int64(-1), []byte("<rdf:RDF")
	buf := make([]byte, part+len(mark))
	for at := int64(0); at < f.Size(); at += part {
		n, _ := f.ReadAt(buf[:min(int64(len(buf)), f.Size()-at)], at)
		if n == 0 {
			break
		}
		for i := 0; ; {
			x := bytes.Index(buf[i:n], mark)
			if x < 0 {
				break
			}
			begin, i = at+int64(i+x), i+x+len(mark)
		}
	}
	if begin < 0 {
		return nil
	}
	packet := make([]byte, min(most, f.Size()-begin))
	n, _ := f.ReadAt(packet, begin)
	packet, _, found := bytes.Cut(packet[:n], []byte("</rdf:RDF>"))
	if !found {
		return nil
	}
	return append(packet, "</rdf:RDF>"...)
}

const (
	nsDC  = "http://purl.org/dc/elements/1.1/"
	nsXMP = "http://ns.adobe.com/xap/1.0/"
	nsRts = "http://ns.adobe.com/xap/1.0/rights/"
	nsTDM = "http://www.w3.org/ns/tdmrep/"
	nsCC  = "http://creativecommons.org/ns#"
)

// parseXMP reads a packet. A broken one gives what comes before the fault.
func parseXMP(packet []byte) xmp {
	var x xmp
	d := xml.NewDecoder(bytes.NewReader(packet))
	d.Strict = false
	d.CharsetReader = func(_ string, r io.Reader) (io.Reader, error) { return r, nil }
	var path []xml.Name
	var text strings.Builder
	for {
		t, err := d.Token()
		if err != nil {
			return x
		}
		switch t := t.(type) {
		case xml.StartElement:
			if path = append(path, t.Name); len(path) > 64 {
				return x
			}
			text.Reset()
			for _, a := range t.Attr {
				if t.Name.Local == "Description" {
					x.set(a.Name, a.Value)
				} else if a.Name.Local == "resource" && len(path) == 3 {
					x.set(t.Name, a.Value)
				}
			}
		case xml.CharData:
			text.Write(t)
		case xml.EndElement:
			if n := len(path); n >= 3 { // RDF, Description, property
				if v := strings.Join(strings.Fields(text.String()), " "); v != "" {
					x.set(path[2], v)
				}
			}
			if len(path) > 0 {
				path = path[:len(path)-1]
			}
			text.Reset()
		default:
		}
	}
}

// set records a property's value, or the first of several.
func (x *xmp) set(name xml.Name, value string) {
	var field *string
	switch name.Space + " " + name.Local {
	case nsDC + " creator":
		if len(x.creators) < 100 {
			x.creators = append(x.creators, value)
		}
		return
	case nsDC + " title":
		field = &x.title
	case nsDC + " description":
		field = &x.description
	case nsDC + " rights":
		field = &x.rights
	case nsDC + " language":
		field = &x.lang
	case nsXMP + " CreateDate":
		field = &x.created
	case nsXMP + " ModifyDate":
		field = &x.modified
	case nsRts + " WebStatement", nsCC + " license":
		field = &x.license
	case nsTDM + " reservation":
		field = &x.reservation
	case nsTDM + " policy":
		field = &x.policy
	default:
		return
	}
	if *field == "" {
		*field = value
	}
}

// isoDate returns a date of XMP as RFC 3339, or as a date if it has no time or no zone; "" if it is none.
func isoDate(s string) string {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.Format(time.RFC3339)
		}
	}
	if len(s) >= 10 {
		if _, err := time.Parse(time.DateOnly, s[:10]); err == nil {
			return s[:10]
		}
	}
	return ""
}

var infoDatePattern = regexp.MustCompile(`^(?:D:)?(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:(Z)|([+-])(\d\d)'?(\d\d)?)?`)

// infoDate does the same for a date of the document information dictionary, such as D:20260102030405+01'00'.
func infoDate(s string) string {
	m := infoDatePattern.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil || m[3] == "" {
		return ""
	}
	day := m[1] + "-" + m[2] + "-" + m[3]
	if _, err := time.Parse(time.DateOnly, day); err != nil {
		return ""
	}
	if m[5] == "" || m[7] == "" && m[8] == "" {
		return day
	}
	seconds, zone := m[6], "Z"
	if seconds == "" {
		seconds = "00"
	}
	if m[8] != "" {
		minutes := m[10]
		if minutes == "" {
			minutes = "00"
		}
		zone = m[8] + m[9] + ":" + minutes
	}
	t, err := time.Parse(time.RFC3339, day+"T"+m[4]+":"+m[5]+":"+seconds+zone)
	if err != nil {
		return day
	}
	return t.Format(time.RFC3339)
}

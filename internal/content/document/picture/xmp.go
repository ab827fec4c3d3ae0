package picture

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"time"
)

// handleXMP reads an XMP packet.
func (r *reader) handleXMP(in io.Reader) error {
	packet, err := io.ReadAll(io.LimitReader(in, maxXMP))
	if err != nil {
		return err
	}
	r.parseXMP(packet)
	_, err = io.Copy(io.Discard, in)
	return err
}

// maxDepth is how many elements are nested in a packet.
const maxDepth = 64

// parseXMP reads the properties of a packet, up to where it is damaged. They are attributes or elements of
// rdf:Description.
func (r *reader) parseXMP(packet []byte) {
	d := xml.NewDecoder(bytes.NewReader(packet))
	d.Strict = false
	var path []xml.Name
	property := 0 // depth of the property that is read; 0: none
	var text strings.Builder
	for range maxXMP {
		t, err := d.Token()
		if err != nil {
			return
		}
		switch t := t.(type) {
		case xml.StartElement:
			path = append(path, t.Name)
			if len(path) > maxDepth {
				return
			}
			switch {
			case t.Name.Local == "Description" && property == 0:
				for _, a := range t.Attr {
					r.xmpProperty(a.Name, a.Value)
				}
			case property == 0 && len(path) > 1 && path[len(path)-2].Local == "Description":
				property = len(path)
				text.Reset()
				for _, a := range t.Attr {
					if a.Name.Local == "resource" {
						text.WriteString(a.Value)
					}
				}
			case t.Name.Local == "li" && strings.TrimSpace(text.String()) != "":
				if path[len(path)-2].Local == "Alt" {
					property = -property // the first language is enough
				} else {
					text.WriteString(", ")
				}
			}
		case xml.EndElement:
			if n := len(path); n > 0 && (property == n || property == -n) {
				r.xmpProperty(path[n-1], text.String())
				property = 0
			}
			if len(path) > 0 {
				path = path[:len(path)-1]
			}
		case xml.CharData:
			if property > 0 && text.Len() < maxText {
				text.WriteString(string(bytes.TrimSpace(t)))
			}
		}
	}
}

func (r *reader) xmpProperty(name xml.Name, value string) {
	d := &r.doc
	if strings.TrimSpace(value) == "" || len(d.Properties) > 50 {
		return
	}
	switch space := strings.TrimSuffix(name.Space, "/"); {
	case space == "http://purl.org/dc/elements/1.1":
		switch name.Local {
		case "title":
			r.set(&d.Title, xmp, value)
		case "creator":
			r.set(&d.Author, xmp, value)
		case "rights":
			r.set(&d.Rights, xmp, value)
		case "description":
			r.set(&d.Description, xmp, value)
		}
	case space == "http://ns.adobe.com/photoshop/1.0" && name.Local == "DateCreated",
		space == "http://ns.adobe.com/xap/1.0" && name.Local == "CreateDate":
		r.set(&d.Published, xmp, isoDate(value))
	case space == "http://ns.adobe.com/xap/1.0" && name.Local == "ModifyDate":
		r.set(&d.Modified, xmp, isoDate(value))
	case space == "http://ns.adobe.com/xap/1.0/rights" && name.Local == "UsageTerms":
		r.property("usage-terms", value)
	case space == "http://ns.adobe.com/xap/1.0/rights" && name.Local == "WebStatement":
		r.property("rights-url", value)
	case space == "http://ns.useplus.org/ldf/xmp/1.0" && name.Local == "DataMining":
		value = strings.TrimSpace(value)
		r.property("plus-data-mining", value[strings.LastIndexByte(value, '/')+1:])
	case strings.HasPrefix(space, "http://www.w3.org/ns/tdmrep") &&
		(name.Local == "reservation" || name.Local == "policy"):
		r.property("tdm-"+name.Local, value)
	}
}

// isoDate returns a date of XMP as a document has it.
func isoDate(s string) string {
	s = strings.TrimSpace(s)
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04Z07:00"} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.Format(time.RFC3339)
		}
	}
	if t, err := time.Parse(time.DateOnly, s[:min(len(s), 10)]); err == nil {
		return t.Format(time.DateOnly)
	}
	return ""
}

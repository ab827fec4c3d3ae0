package parse

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"kumo/internal/base/page"
)

// script extracts the references of a script: those of JSON-LD, imported modules and, if configured, strings that look
// like paths.
func (p *Parser) script() {
	if len(p.scan.content) == 0 {
		return
	}
	mime, _ := p.value(attrType)
	switch mime = trimLeft(mime); {
	case len(mime) >= len(jsonLD) && equalFold(mime[:len(jsonLD)], jsonLD):
		p.linkedData(p.scan.content)
		return
	default:
		if names := modulesOf(mime, p.scan.content); names != nil {
			p.modules(names)
		}
	}
	if p.cfg.Scripts {
		p.paths(p.scan.content)
	}
}

const jsonLD = "application/ld+json"

// maxLinkedData limits the nesting depth of objects and arrays.
const maxLinkedData = 64

// linkedData extracts the URLs in JSON-LD: the values of properties that contain a URL, and other values that begin
// like a web address. URLs below an image property are images. It reads JSON as a stream of strings and brackets, and
// so tolerates most syntax errors.
func (x *extractor) linkedData(json []byte) {
	d := linkedData{extractor: x, src: json}
	for d.pos < len(json) {
		c := json[d.pos]
		d.pos++
		switch c {
		case '"':
			d.text()
		case '{', '[':
			d.open(c == '{')
		case '}', ']':
			d.depth = max(0, d.depth-1)
			d.current = ldValue{}
		case ',':
			if d.level().object {
				d.current = ldValue{}
			}
		}
	}
}

// linkedData is the state of a JSON-LD reader.
type linkedData struct {
	*extractor
	src     []byte
	pos     int
	stack   [maxLinkedData]ldLevel
	depth   int // may exceed the length of the stack
	current ldValue
}

// An ldLevel is an open object or array.
type ldLevel struct {
	object   bool
	property property // the property whose value it is
}

// An ldValue is the state at the position of a string: whether a key was read, and the property of the value.
type ldValue struct {
	keyed    bool
	property property
}

// A property is the type of a key's value.
type property uint8

const (
	propertyOther   property = iota
	propertyID               // @id
	propertyURL              // a URL
	propertyImage            // an image's URL, or an object with it
	propertyMedia            // the URL of an audio or video file
	propertyIgnored          // @context, @type: names, not locations
)

func (d *linkedData) level() *ldLevel {
	if d.depth == 0 {
		return &ldLevel{}
	}
	return &d.stack[min(d.depth, maxLinkedData)-1]
}

// open opens an object or array. It is the value of the last key or an element of the enclosing array.
func (d *linkedData) open(object bool) {
	prop := d.effective()
	d.depth++
	if d.depth <= maxLinkedData {
		d.stack[d.depth-1] = ldLevel{object, prop}
	}
	d.current = ldValue{}
}

// effective returns the property of the current value. The url of an image is an image, and everything in a context is
// ignored.
func (d *linkedData) effective() property {
	level, own := d.level(), d.current.property
	switch {
	case !level.object, level.property == propertyIgnored:
		return level.property
	case level.property < propertyImage:
	case own == propertyURL, own == propertyMedia:
		return level.property
	case own == propertyID:
		return propertyIgnored
	}
	return own
}

// text reads a string after its opening quote: a key or a value.
func (d *linkedData) text() {
	start, escaped := d.pos, false
	for d.pos < len(d.src) && d.src[d.pos] != '"' {
		if d.src[d.pos] == '\\' {
			escaped = true
			d.pos++
		}
		d.pos++
	}
	raw := d.src[min(start, len(d.src)):min(d.pos, len(d.src))]
	d.pos = min(d.pos+1, len(d.src))
	if d.level().object && !d.current.keyed {
		d.current = ldValue{true, propertyOf(raw)}
		return
	}
	d.addURL(raw, escaped, d.effective())
}

// addURL adds a value if it is a URL.
func (d *linkedData) addURL(raw []byte, escaped bool, prop property) {
	if prop == propertyIgnored || len(raw) == 0 || len(raw) > maxValue {
		return
	}
	d.extractor.text.reset()
	value := d.extractor.text.decode(raw)
	if escaped {
		value = d.extractor.text.unescapeJSON(value)
	}
	if len(value) == 0 || prop == propertyOther && !isAbsolute(value) || bytes.ContainsAny(value, " \t\r\n<>{}\"") ||
		isSchemaName(value) ||
		bytes.HasPrefix(value, []byte("#")) || bytes.HasPrefix(value, []byte("_:")) {
		return
	}
	kind := page.JSONLD
	switch prop {
	case propertyImage:
		kind = page.Image
	case propertyMedia:
		kind = page.Media
	}
	d.link(&reference{url: value, kind: kind})
}

// propertyOf returns the property of a key. The names are those of schema.org.
func propertyOf(key []byte) property {
	switch string(key) {
	case "@id":
		return propertyID
	case "url", "sameAs", "mainEntityOfPage", "item", "isPartOf", "discussionUrl", "downloadUrl", "codeRepository",
		"relatedLink",
		"significantLink", "archivedAt", "license", "installUrl", "paymentUrl", "replyToUrl", "tourBookingPage":
		return propertyURL
	case "image", "logo", "photo", "thumbnail", "thumbnailUrl", "primaryImageOfPage", "screenshot":
		return propertyImage
	case "contentUrl", "embedUrl":
		return propertyMedia
	case "@context", "@type", "@vocab", "@base":
		return propertyIgnored
	}
	return propertyOther
}

// isSchemaName reports whether a value is a name from schema.org, not a location.
func isSchemaName(value []byte) bool {
	if !isAbsolute(value) {
		return false
	}
	_, rest, _ := bytes.Cut(value, []byte("://"))
	return bytes.HasPrefix(bytes.TrimPrefix(rest, []byte("www.")), []byte("schema.org/"))
}

// unescapeJSON returns a JSON string without escapes.
func (t *text) unescapeJSON(in []byte) []byte {
	start := len(t.buf)
	for len(in) > 0 {
		i := indexByte(in, '\\')
		t.buf = append(t.buf, in[:i]...)
		if in = in[i:]; len(in) < 2 {
			break
		}
		if in[1] != 'u' || len(in) < 6 {
			t.buf, in = append(t.buf, in[1]), in[2:]
			continue
		}
		r, err := strconv.ParseUint(string(in[2:6]), 16, 16)
		if err != nil {
			r = utf8.RuneError
		}
		t.buf, in = utf8.AppendRune(t.buf, rune(r)), in[6:]
	}
	return t.buf[start:]
}

package parse

// A tag is the name of an element, as far as it means something here.
type tag uint8

const (
	tagOther tag = iota
	tagA
	tagArea
	tagAudio
	tagBase
	tagFrame
	tagInput
	tagLink
	tagObject
	tagSource
	tagTrack
	tagVideo
	tagImage
	tagFont

	tagSVG
	tagMath
	tagSVGText    // foreignObject, desc
	tagMathText   // mi, mo, mn, ms, mtext
	tagAnnotation // annotation-xml

	// Elements that are never SVG or MathML: their tags end these.
	tagHTML // all those without a name of their own here
	tagBody
	tagEmbed
	tagImg
	tagMeta

	// Elements with raw text.
	tagIframe
	tagNoembed
	tagNoframes
	tagPlaintext
	tagScript
	tagStyle
	tagTextarea
	tagTitle
	tagXmp

	firstRaw = tagIframe
)

// known reports whether the element itself, not just the place where it stands, matters.
func (t tag) known() bool { return t != tagOther && t != tagHTML }

func (t tag) isHTML() bool { return t >= tagHTML && t <= tagMeta }

var rawNames = [...]string{"iframe", "noembed", "noframes", "plaintext", "script", "style", "textarea", "title", "xmp"}

// name is the name of an element with raw text.
func (t tag) name() string { return rawNames[t-firstRaw] }

const maxName = 16 // no name below is longer

// lower returns the name in lower case, in room, or nothing if it is longer than any that is known.
func lower(room *[maxName]byte, name []byte) []byte {
	if len(name) > maxName {
		return nil
	}
	for i, c := range name {
		room[i] = toLower(c)
	}
	return room[:len(name)]
}

func tagOf(name []byte) tag {
	var room [maxName]byte
	switch string(lower(&room, name)) {
	case "a":
		return tagA
	case "area":
		return tagArea
	case "audio":
		return tagAudio
	case "base":
		return tagBase
	case "frame":
		return tagFrame
	case "input":
		return tagInput
	case "link":
		return tagLink
	case "object":
		return tagObject
	case "source":
		return tagSource
	case "track":
		return tagTrack
	case "video":
		return tagVideo
	case "image":
		return tagImage
	case "font":
		return tagFont
	case "body":
		return tagBody
	case "embed":
		return tagEmbed
	case "img":
		return tagImg
	case "meta":
		return tagMeta
	case "iframe":
		return tagIframe
	case "noembed":
		return tagNoembed
	case "noframes":
		return tagNoframes
	case "plaintext":
		return tagPlaintext
	case "script":
		return tagScript
	case "style":
		return tagStyle
	case "textarea":
		return tagTextarea
	case "title":
		return tagTitle
	case "xmp":
		return tagXmp
	case "svg":
		return tagSVG
	case "math":
		return tagMath
	case "foreignobject", "desc":
		return tagSVGText
	case "mi", "mo", "mn", "ms", "mtext":
		return tagMathText
	case "annotation-xml":
		return tagAnnotation
	case "b", "big", "blockquote", "br", "center", "code", "dd", "div", "dl", "dt", "em", "h1", "h2", "h3", "h4", "h5", "h6",
		"head", "hr", "i", "li", "listing", "menu", "nobr", "ol", "p", "pre", "ruby", "s", "small", "span", "strong", "strike",
		"sub", "sup", "table", "tt", "u", "ul", "var":
		return tagHTML
	}
	return tagOther
}

// An attr is the name of an attribute, as far as it means something here.
type attr uint8

const (
	attrOther attr = iota
	attrBackground
	attrCharset
	attrContent
	attrData
	attrEncoding
	attrFont // color, face, size: which make a font element HTML
	attrHref
	attrHTTPEquiv
	attrPoster
	attrRel
	attrSrc
	attrSrcset
	attrType
	attrXlinkHref
	numAttrs
)

func attrOf(name []byte) attr {
	var room [maxName]byte
	switch string(lower(&room, name)) {
	case "background":
		return attrBackground
	case "charset":
		return attrCharset
	case "content":
		return attrContent
	case "data":
		return attrData
	case "encoding":
		return attrEncoding
	case "color", "face", "size":
		return attrFont
	case "href":
		return attrHref
	case "http-equiv":
		return attrHTTPEquiv
	case "poster":
		return attrPoster
	case "rel":
		return attrRel
	case "src":
		return attrSrc
	case "srcset":
		return attrSrcset
	case "type":
		return attrType
	case "xlink:href":
		return attrXlinkHref
	}
	return attrOther
}

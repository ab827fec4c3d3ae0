package parse

// A tag is the name of an element that the package uses.
type tag uint8

const (
	tagOther tag = iota
	tagA
	tagApplet
	tagArea
	tagAudio
	tagBase
	tagButton
	tagCell // td, th, tr, thead, tbody, tfoot: they may have a background
	tagCite // q, ins, del
	tagFont
	tagForm
	tagFrame
	tagImage
	tagInput
	tagLink
	tagObject
	tagRoot // html
	tagSelect
	tagSound // bgsound
	tagSource
	tagTrack
	tagUse // SVG's use and feImage
	tagVideo

	tagSVG
	tagMath
	tagTemplate
	tagSVGText    // foreignObject, desc
	tagMathText   // mi, mo, mn, ms, mtext
	tagAnnotation // annotation-xml

	// Elements that are never SVG or MathML: their start tags leave these namespaces.
	tagHTML // all of these that have no constant of their own
	tagBlockquote
	tagBody
	tagEmbed
	tagH1
	tagImg
	tagTable
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

// known reports whether the package uses the element itself, not only its position.
func (t tag) known() bool { return t != tagOther && t != tagHTML }

func (t tag) isHTML() bool { return t >= tagHTML && t <= tagMeta }

var rawNames = [...]string{"iframe", "noembed", "noframes", "plaintext", "script", "style", "textarea", "title", "xmp"}

// name returns the name of an element with raw text.
func (t tag) name() string { return rawNames[t-firstRaw] }

const maxName = 16 // the longest name in the tables

// lower returns the name in lower case, in room, or nil if it is longer than all known names.
func lower(room *[maxName]byte, name []byte) []byte {
	if len(name) > maxName {
		return nil
	}
	for i, c := range name {
		room[i] = toLower(c)
	}
	return room[:len(name)]
}

var tags = newNameTable(map[string]tag{
	"a":              tagA,
	"applet":         tagApplet,
	"area":           tagArea,
	"audio":          tagAudio,
	"base":           tagBase,
	"button":         tagButton,
	"form":           tagForm,
	"frame":          tagFrame,
	"input":          tagInput,
	"link":           tagLink,
	"object":         tagObject,
	"html":           tagRoot,
	"select":         tagSelect,
	"bgsound":        tagSound,
	"source":         tagSource,
	"track":          tagTrack,
	"video":          tagVideo,
	"image":          tagImage,
	"font":           tagFont,
	"blockquote":     tagBlockquote,
	"body":           tagBody,
	"embed":          tagEmbed,
	"img":            tagImg,
	"table":          tagTable,
	"meta":           tagMeta,
	"iframe":         tagIframe,
	"noembed":        tagNoembed,
	"noframes":       tagNoframes,
	"plaintext":      tagPlaintext,
	"script":         tagScript,
	"style":          tagStyle,
	"template":       tagTemplate,
	"textarea":       tagTextarea,
	"title":          tagTitle,
	"xmp":            tagXmp,
	"svg":            tagSVG,
	"math":           tagMath,
	"annotation-xml": tagAnnotation,
	"td":             tagCell,
	"th":             tagCell,
	"tr":             tagCell,
	"thead":          tagCell,
	"tbody":          tagCell,
	"tfoot":          tagCell,
	"q":              tagCite,
	"ins":            tagCite,
	"del":            tagCite,
	"use":            tagUse,
	"feimage":        tagUse,
	"foreignobject":  tagSVGText,
	"desc":           tagSVGText,
	"mi":             tagMathText,
	"mo":             tagMathText,
	"mn":             tagMathText,
	"ms":             tagMathText,
	"mtext":          tagMathText,
	"b":              tagHTML,
	"big":            tagHTML,
	"br":             tagHTML,
	"center":         tagHTML,
	"code":           tagHTML,
	"dd":             tagHTML,
	"div":            tagHTML,
	"dl":             tagHTML,
	"dt":             tagHTML,
	"em":             tagHTML,
	"h1":             tagH1,
	"h2":             tagHTML,
	"h3":             tagHTML,
	"h4":             tagHTML,
	"h5":             tagHTML,
	"h6":             tagHTML,
	"head":           tagHTML,
	"hr":             tagHTML,
	"i":              tagHTML,
	"li":             tagHTML,
	"listing":        tagHTML,
	"menu":           tagHTML,
	"nobr":           tagHTML,
	"ol":             tagHTML,
	"p":              tagHTML,
	"pre":            tagHTML,
	"ruby":           tagHTML,
	"s":              tagHTML,
	"small":          tagHTML,
	"span":           tagHTML,
	"strong":         tagHTML,
	"strike":         tagHTML,
	"sub":            tagHTML,
	"sup":            tagHTML,
	"tt":             tagHTML,
	"u":              tagHTML,
	"ul":             tagHTML,
	"var":            tagHTML,
})

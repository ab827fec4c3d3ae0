package parse

// An attr is the name of an attribute that the package uses.
type attr uint8

const (
	attrOther attr = iota
	attrAction
	attrAlt
	attrBackground
	attrCharset
	attrCite
	attrContent
	attrData
	attrDynsrc
	attrEncoding
	attrFont // color, face, size: they make a font element break out of SVG and MathML
	attrHref
	attrHrefLang
	attrHTTPEquiv
	attrImageSrcset
	attrLongDesc
	attrLowSrc
	attrManifest
	attrMethod
	attrName
	attrPing
	attrPoster
	attrProperty
	attrRel
	attrSrc
	attrSrcdoc
	attrSrcset
	attrStyle
	attrType
	attrXlinkHref

	// Attributes with URLs that scripts load later.
	attrDataBackground
	attrDataFullSrc
	attrDataLazySrc
	attrDataLazySrcset
	attrDataOriginal
	attrDataSrc
	attrDataSrcset
	numAttrs

	firstLazy = attrDataBackground
)

var attrs = newNameTable(map[string]attr{
	"action": attrAction, "alt": attrAlt, "background": attrBackground, "charset": attrCharset, "cite": attrCite,
	"content": attrContent, "data": attrData, "dynsrc": attrDynsrc, "encoding": attrEncoding, "color": attrFont,
	"face": attrFont, "size": attrFont, "href": attrHref, "hreflang": attrHrefLang, "http-equiv": attrHTTPEquiv,
	"imagesrcset": attrImageSrcset, "longdesc": attrLongDesc, "lowsrc": attrLowSrc, "manifest": attrManifest,
	"method": attrMethod, "name": attrName, "ping": attrPing, "poster": attrPoster, "property": attrProperty,
	"rel": attrRel,
	"src": attrSrc, "srcdoc": attrSrcdoc, "srcset": attrSrcset, "style": attrStyle, "type": attrType,
	"xlink:href": attrXlinkHref, "data-bg": attrDataBackground, "data-full-src": attrDataFullSrc,
	"data-lazy-src": attrDataLazySrc, "data-lazy-srcset": attrDataLazySrcset, "data-original": attrDataOriginal,
	"data-src": attrDataSrc, "data-srcset": attrDataSrcset,
})

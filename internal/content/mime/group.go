package mime

import "strings"

// IsHTML reports whether the type is text/html.
func (t Type) IsHTML() bool { return t.Main == "text" && t.Sub == "html" }

// IsXML reports whether the type is an XML type: text/xml, application/xml or a name that ends with +xml.
func (t Type) IsXML() bool {
	return t.Sub == "xml" && (t.Main == "text" || t.Main == "application") || strings.HasSuffix(t.Sub, "+xml")
}

// IsJSON reports whether the type is a JSON type.
func (t Type) IsJSON() bool {
	return t.Sub == "json" && (t.Main == "text" || t.Main == "application") || strings.HasSuffix(t.Sub, "+json")
}

// IsJavaScript reports whether a browser runs bodies of the type as scripts.
func (t Type) IsJavaScript() bool {
	switch t.Sub {
	case "javascript", "ecmascript", "x-javascript", "x-ecmascript":
		return t.Main == "text" || t.Main == "application"
	case "javascript1.0", "javascript1.1", "javascript1.2", "javascript1.3", "javascript1.4", "javascript1.5", "jscript",
		"livescript":
		return t.Main == "text"
	}
	return false
}

// IsImage reports whether the type is an image type.
func (t Type) IsImage() bool { return t.Main == "image" }

// IsMedia reports whether the type is an audio or video type.
func (t Type) IsMedia() bool {
	return t.Main == "audio" || t.Main == "video" || t.Essence() == "application/ogg"
}

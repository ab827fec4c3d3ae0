package names

import "strings"

// extensions maps media types to the extensions that file systems and browsers know, the usual one first.
var extensions = map[string][]string{
	"text/html":                     {".html", ".htm"},
	"application/xhtml+xml":         {".xhtml", ".xht"},
	"text/css":                      {".css"},
	"text/javascript":               {".js", ".mjs"},
	"text/plain":                    {".txt"},
	"text/xml":                      {".xml", ".rss", ".atom", ".xsl", ".xslt", ".rdf"},
	"text/csv":                      {".csv"},
	"text/calendar":                 {".ics"},
	"text/vtt":                      {".vtt"},
	"application/json":              {".json", ".map", ".geojson", ".webmanifest"},
	"application/manifest+json":     {".webmanifest", ".json"},
	"application/pdf":               {".pdf"},
	"application/wasm":              {".wasm"},
	"application/zip":               {".zip", ".jar", ".apk", ".epub", ".docx", ".xlsx", ".pptx", ".odt"},
	"application/gzip":              {".gz", ".tgz"},
	"application/epub+zip":          {".epub"},
	"application/msword":            {".doc"},
	"application/vnd.ms-excel":      {".xls"},
	"application/vnd.ms-powerpoint": {".ppt"},
	"image/png":                     {".png"},
	"image/apng":                    {".png", ".apng"},
	"image/jpeg":                    {".jpg", ".jpeg", ".jpe", ".jfif"},
	"image/gif":                     {".gif"},
	"image/webp":                    {".webp"},
	"image/avif":                    {".avif"},
	"image/svg+xml":                 {".svg"},
	"image/x-icon":                  {".ico"},
	"image/bmp":                     {".bmp"},
	"image/tiff":                    {".tif", ".tiff"},
	"font/woff":                     {".woff"},
	"font/woff2":                    {".woff2"},
	"font/ttf":                      {".ttf"},
	"font/otf":                      {".otf"},
	"application/vnd.ms-fontobject": {".eot"},
	"audio/mpeg":                    {".mp3"},
	"audio/ogg":                     {".ogg", ".oga", ".opus"},
	"audio/wav":                     {".wav"},
	"audio/mp4":                     {".m4a"},
	"video/mp4":                     {".mp4", ".m4v"},
	"video/webm":                    {".webm"},
	"video/ogg":                     {".ogv", ".ogg"},
	"video/quicktime":               {".mov"},
}

// aliases maps other names of media types to the usual ones.
var aliases = map[string]string{
	"application/javascript":       "text/javascript",
	"application/x-javascript":     "text/javascript",
	"text/x-javascript":            "text/javascript",
	"application/ecmascript":       "text/javascript",
	"text/ecmascript":              "text/javascript",
	"application/xml":              "text/xml",
	"application/rss+xml":          "text/xml",
	"application/atom+xml":         "text/xml",
	"application/rdf+xml":          "text/xml",
	"application/xslt+xml":         "text/xml",
	"image/jpg":                    "image/jpeg",
	"image/pjpeg":                  "image/jpeg",
	"image/vnd.microsoft.icon":     "image/x-icon",
	"image/ico":                    "image/x-icon",
	"image/x-ms-bmp":               "image/bmp",
	"image/x-png":                  "image/png",
	"application/font-woff":        "font/woff",
	"application/x-font-woff":      "font/woff",
	"application/font-woff2":       "font/woff2",
	"application/x-font-ttf":       "font/ttf",
	"application/x-font-truetype":  "font/ttf",
	"font/sfnt":                    "font/ttf",
	"application/font-sfnt":        "font/ttf",
	"application/x-font-otf":       "font/otf",
	"application/x-font-opentype":  "font/otf",
	"audio/mp3":                    "audio/mpeg",
	"audio/x-wav":                  "audio/wav",
	"application/x-gzip":           "application/gzip",
	"application/x-zip-compressed": "application/zip",
	"application/ld+json":          "application/json",
	"text/json":                    "application/json",
	"application/x-pdf":            "application/pdf",
}

// Types lists the known media types by number; 0 is any other type.
var Types = func() []string {
	all := []string{""}
	for t := range extensions {
		all = append(all, t)
	}
	return all
}()

// TypeNumbers maps media types to their numbers.
var TypeNumbers = func() map[string]uint8 {
	numbers := map[string]uint8{}
	for n, t := range Types {
		numbers[t] = uint8(n)
	}
	return numbers
}()

// typesOf maps extensions to media types.
var typesOf = func() map[string][]string {
	all := map[string][]string{}
	for t, list := range extensions {
		for _, ext := range list {
			all[ext] = append(all[ext], t)
		}
	}
	return all
}()

// Type returns the usual name of a media type; "" if it is not known.
func Type(mediaType string) string {
	if to, ok := aliases[mediaType]; ok {
		mediaType = to
	}
	if _, ok := extensions[mediaType]; ok {
		return mediaType
	}
	return ""
}

// missingExtension returns the extension to add to a name with the extension own so that its type is recognized; "" if
// none is needed.
func missingExtension(mediaType, own string) string {
	own = strings.ToLower(own)
	list := extensions[mediaType]
	for _, ext := range list {
		if ext == own {
			return ""
		}
	}
	if len(list) == 0 {
		return ""
	}
	if _, misleads := typesOf[own]; !misleads && len(own) > 1 {
		switch mediaType {
		// these have many variants with their own extensions
		case "text/plain", "text/xml", "application/json", "application/zip":
			return ""
		}
	}
	return list[0]
}

// Package names derives file names from URLs that are valid on every common file system.
//
// A name has the form HOST/PATH, with the port after a + and the query after an @. Characters and names that some file
// system rejects or treats specially are percent-encoded or cut. Names that would then be ambiguous, also on a
// case-insensitive file system, have a hash of the URL after a ~.
package names

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"path"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"kumo/internal/base/weburl"
)

// Start is the name of the start page. No host's folder has this name.
const Start = "index.html"

const (
	maxName = 180 // bytes of a file or folder name; file systems allow 255
	maxPath = 220 // bytes of a path; some systems allow 260 with the parent folders
	index   = "index"
)

// Of returns the file name of a URL, before it is compared with other names. mediaType is one of Types or "".
func Of(u weburl.URL, mediaType string) string {
	segments := strings.Split(strings.TrimPrefix(u.Path(), "/"), "/")
	last := len(segments) - 1
	parts := []string{Host(u)}
	for _, s := range segments[:last] {
		parts = append(parts, truncate(encodeComponent(s), ""))
	}
	parts = append(parts, fileName(segments[last], u.Query(), mediaType))
	name := strings.Join(parts, "/")
	if len(name) > maxPath {
		file := parts[len(parts)-1]
		name = parts[0] + "/~" + hashOf(u.String()) + "/" + truncateTo(file, extensionOf(file), 80)
	}
	return name
}

// Host returns the name of a host's folder.
func Host(u weburl.URL) string {
	name := encodeComponent(weburl.FileNamePart(u.Hostname()))
	if port := u.Port(); port != "" {
		name += "+" + port
	}
	if strings.HasPrefix(name, ".") || name == Start {
		name = percentEncode(name[:1]) + name[1:]
	}
	return truncate(name, "")
}

// fileName returns the file name for the last segment of a path.
func fileName(segment, query, mediaType string) string {
	if segment == "" {
		segment = index
	}
	name := encodeComponent(segment)
	own := extensionOf(name)
	if query != "" {
		name = encodeComponent(segment + "@" + query)
	}
	ext := missingExtension(mediaType, extensionOf(name))
	if ext == "" && query != "" && len(own) > 1 && mediaType == "" && plainExtension.MatchString(own) {
		ext = own // the file may be recognized by it if its type is unknown
	}
	if ext == "" {
		return truncate(name, extensionOf(name))
	}
	return truncate(name+ext, ext)
}

var plainExtension = regexp.MustCompile(`^\.[A-Za-z0-9]{1,8}$`)

// extensionOf returns the part from the last dot, if it can be an extension.
func extensionOf(name string) string {
	if ext := path.Ext(name); plainExtension.MatchString(ext) && len(ext) < len(name) {
		return ext
	}
	return ""
}

// encodeComponent returns a path segment as a file or folder name. Percent-encoded text is decoded; bytes that are not
// text or that have a special meaning are encoded.
func encodeComponent(part string) string {
	text := norm.NFC.String(decode(part))
	var b strings.Builder
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		if ok := unicode.IsPrint(r) && !strings.ContainsRune(`<>:"/\|?*%`, r) && (r != utf8.RuneError || n > 1); ok {
			b.WriteString(text[i : i+n])
		} else {
			b.WriteString(percentEncode(text[i : i+n]))
		}
		i += n
	}
	name := b.String()
	if name == "" {
		return "_"
	}
	if c := name[len(name)-1]; c == '.' || c == ' ' {
		name = name[:len(name)-1] + percentEncode(string(c))
	}
	if c := name[0]; c == ' ' || isDevice(name) {
		name = percentEncode(string(c)) + name[1:]
	}
	return hashLike.ReplaceAllString(name, "%7E$1")
}

// hashLike matches strings that look like a hash appended to make a name unique.
var hashLike = regexp.MustCompile(`~([a-z2-7]{10}(?:\.|$))`)

// decode decodes percent escapes. Other percent signs stay.
func decode(in string) string {
	var out []byte
	for i := 0; i < len(in); i++ {
		if in[i] == '%' && i+2 < len(in) {
			if b, err := hex.DecodeString(in[i+1 : i+3]); err == nil {
				out = append(out, b...)
				i += 2
				continue
			}
		}
		out = append(out, in[i])
	}
	return string(out)
}

// percentEncode encodes all bytes of a text.
func percentEncode(text string) string {
	const digits = "0123456789ABCDEF"
	out := make([]byte, 0, 3*len(text))
	for i := range len(text) {
		out = append(out, '%', digits[text[i]>>4], digits[text[i]&15])
	}
	return string(out)
}

// isDevice reports whether a name is a device on Windows, with any extension.
func isDevice(name string) bool {
	stem, _, _ := strings.Cut(name, ".")
	stem = strings.ToUpper(strings.TrimRight(stem, " "))
	switch stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$":
		return true
	}
	rest, is := strings.CutPrefix(stem, "COM")
	if !is {
		rest, is = strings.CutPrefix(stem, "LPT")
	}
	return is && utf8.RuneCountInString(rest) == 1 && strings.ContainsAny(rest, "0123456789¹²³")
}

// truncate shortens a name that is too long, and appends the extension.
func truncate(name, ext string) string { return truncateTo(name, ext, maxName) }

func truncateTo(name, ext string, most int) string {
	if len(name) <= most {
		return name
	}
	keep := most - len(ext) - len("~0123456789")
	for keep > 0 && (!utf8.RuneStart(name[keep]) || strings.LastIndexByte(name[:keep], '%') > keep-3) {
		keep--
	}
	return name[:keep] + "~" + hashOf(name) + ext
}

var lowerBase32 = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567")

// hashOf returns 50 bits of a hash as ten letters and digits.
func hashOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return lowerBase32.EncodeToString(sum[:10])[:10]
}

// WithHash returns the name with a hash of its URL.
func WithHash(name, url string) string {
	ext := extensionOf(path.Base(name))
	return name[:len(name)-len(ext)] + "~" + hashOf(url) + ext
}

// FoldCase returns the form of a name by which a case-insensitive file system compares names.
func FoldCase(name string) string { return norm.NFC.String(cases.Fold().String(name)) }

// escapePath returns a name as a relative URL.
func escapePath(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
			strings.IndexByte("/-._~@!$*+=;", c) >= 0 {
			b.WriteByte(c)
		} else {
			b.WriteString(percentEncode(name[i : i+1]))
		}
	}
	return b.String()
}

// Relative returns the relative URL from one file to another.
func Relative(from, to string) string {
	f, t := strings.Split(from, "/"), strings.Split(to, "/")
	same := 0
	for same < len(f)-1 && same < len(t)-1 && f[same] == t[same] {
		same++
	}
	return strings.Repeat("../", len(f)-1-same) + escapePath(strings.Join(t[same:], "/"))
}

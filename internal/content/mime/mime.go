// Package mime parses media types and detects the type of a body, by the WHATWG standard "MIME Sniffing".
//
// One thing differs. If a body is declared as HTML, XML or plain text but begins like a PDF, an image, an archive or
// similar, the detected type wins. A browser would show such a page as garbage.
//
// docs/decisions/mime.md compares the package with libraries.
package mime

import "strings"

// A Type is a parsed media type. Its names are in lower case.
type Type struct {
	Main, Sub string // "text", "html"
	Params    []Param
}

// A Param is a parameter of a media type. Its value has no quotes.
type Param struct{ Name, Value string }

// Parse parses a media type, by the standard's section 4.4. It returns false if s is not valid.
//
// Bytes above 0x7F of a header field may be in s unchanged, or as the characters with their numbers.
func Parse(s string) (t Type, ok bool) {
	s = strings.Trim(s, whiteSpace)
	main, rest, ok := strings.Cut(s, "/")
	sub, rest, _ := strings.Cut(rest, ";")
	sub = strings.TrimRight(sub, whiteSpace)
	if !ok || !isToken(main) || !isToken(sub) {
		return Type{}, false
	}
	t = Type{Main: lower(main), Sub: lower(sub)}
	for rest != "" {
		var p Param
		p, rest, ok = param(rest)
		if _, known := t.Param(p.Name); ok && !known && len(t.Params) < maxParams {
			t.Params = append(t.Params, p)
		}
	}
	return t, true
}

// maxParams limits the parameters that are kept. Each is compared with those before it.
const maxParams = 100

const whiteSpace = "\t\n\r "

// param parses the parameter at the beginning of in, and reports whether it is valid.
func param(in string) (p Param, rest string, ok bool) {
	in = strings.TrimLeft(in, whiteSpace)
	end := strings.IndexAny(in, ";=")
	if end < 0 || in[end] == ';' {
		_, rest, _ = strings.Cut(in, ";")
		return Param{}, rest, false
	}
	p.Name, in = lower(in[:end]), in[end+1:]
	if strings.HasPrefix(in, `"`) {
		p.Value, rest = quoted(in[1:])
		_, rest, _ = strings.Cut(rest, ";")
		return p, rest, isToken(p.Name) && isValue(p.Value)
	}
	p.Value, rest, _ = strings.Cut(in, ";")
	p.Value = strings.TrimRight(p.Value, whiteSpace)
	return p, rest, p.Value != "" && isToken(p.Name) && isValue(p.Value)
}

// quoted parses a quoted string after its opening quote. The closing quote may be missing.
func quoted(in string) (value, rest string) {
	var b strings.Builder
	for i := 0; i < len(in); i++ {
		switch {
		case in[i] == '"':
			return b.String(), in[i+1:]
		case in[i] == '\\' && i+1 < len(in):
			i++
		}
		b.WriteByte(in[i])
	}
	return b.String(), ""
}

// Essence returns the type without its parameters: "text/html". It is empty for the zero Type.
func (t Type) Essence() string {
	if t.Main == "" {
		return ""
	}
	return t.Main + "/" + t.Sub
}

// Param returns the value of a parameter. name must be in lower case.
func (t Type) Param(name string) (value string, ok bool) {
	for _, p := range t.Params {
		if p.Name == name {
			return p.Value, true
		}
	}
	return "", false
}

// String returns the type in the standard's serialization.
func (t Type) String() string {
	var b strings.Builder
	b.WriteString(t.Essence())
	for _, p := range t.Params {
		b.WriteString(";" + p.Name + "=")
		if isToken(p.Value) {
			b.WriteString(p.Value)
			continue
		}
		b.WriteString(`"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(p.Value) + `"`)
	}
	return b.String()
}

// isToken reports whether s is a non-empty HTTP token.
func isToken(s string) bool {
	for i := range len(s) {
		if !isTokenByte(s[i]) {
			return false
		}
	}
	return s != ""
}

func isTokenByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~",
		c) >= 0
}

// isValue reports whether an HTTP quoted string can contain s.
func isValue(s string) bool {
	for i, r := range s {
		switch {
		case r == '\t', ' ' <= r && r <= '~', 0x80 <= r && r <= 0xFF:
		case r == '\uFFFD' && !strings.HasPrefix(s[i:], "\uFFFD"): // a byte that is not valid UTF-8
		default:
			return false
		}
	}
	return true
}

// lower returns s with its ASCII letters in lower case.
func lower(s string) string {
	for i := range len(s) {
		if 'A' <= s[i] && s[i] <= 'Z' || s[i] >= 0x80 {
			return strings.Map(lowerRune, s)
		}
	}
	return s
}

func lowerRune(r rune) rune {
	if 'A' <= r && r <= 'Z' {
		r += 'a' - 'A'
	}
	return r
}

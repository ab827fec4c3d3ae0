package parse

import (
	"bytes"
	"slices"
)

// The namespace prefixes of an XHTML document, each with its colon. In XML the namespace identifies a name, whatever
// its prefix. The prefixes apply to the whole document, wherever they are declared.
type prefixes struct {
	elements [][]byte // of XHTML, SVG and MathML
	links    [][]byte // of XLink, other than "xlink"
}

// maxPrefixes limits the prefixes of a kind, maxDeclarations the declarations that are read.
const (
	maxPrefixes     = 8
	maxDeclarations = 1000
)

func findPrefixes(src []byte) (p prefixes) {
	for range maxDeclarations {
		i := bytes.Index(src, []byte("xmlns:"))
		if i < 0 {
			break
		}
		src = src[i+len("xmlns:"):]
		end := nameEnd(src, 0, endsAttrName)
		name := src[:end]
		var value scanner
		value.src = src[:min(len(src), end+256)]
		i = value.skipSpace(end)
		if end == 0 || i == len(value.src) || value.src[i] != '=' {
			continue
		}
		at, _ := value.value(value.skipSpace(i + 1))
		switch string(value.src[at.start:at.end]) {
		case "http://www.w3.org/1999/xhtml", "http://www.w3.org/2000/svg", "http://www.w3.org/1998/Math/MathML":
			p.elements = addPrefix(p.elements, name)
		case "http://www.w3.org/1999/xlink":
			if string(name) != "xlink" {
				p.links = addPrefix(p.links, name)
			}
		}
	}
	return p
}

func addPrefix(all [][]byte, name []byte) [][]byte {
	prefix := append(bytes.Clone(name), ':')
	same := func(p []byte) bool { return bytes.Equal(p, prefix) }
	if len(all) == maxPrefixes || slices.ContainsFunc(all, same) {
		return all
	}
	return append(all, prefix)
}

// skipPrefix returns the start of the local part of the name at i.
func (s *scanner) skipPrefix(i int) int {
	for _, p := range s.elements {
		if end := i + len(p); end < len(s.src) && bytes.HasPrefix(s.src[i:], p) && isLetter(s.src[end]) {
			return end
		}
	}
	return i
}

// isLink reports whether an attribute's name is XLink's href.
func (p *prefixes) isLink(name []byte) bool {
	return slices.ContainsFunc(p.links, func(prefix []byte) bool {
		return len(name) == len(prefix)+len("href") && bytes.HasPrefix(name, prefix) &&
			string(name[len(prefix):]) == "href"
	})
}

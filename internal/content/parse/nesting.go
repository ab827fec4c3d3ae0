package parse

type namespace uint8

const (
	inHTML namespace = iota
	inSVG
	inMath
)

// maxNesting limits the nesting depth of SVG, MathML and HTML in each other.
const maxNesting = 100

// A nesting is the stack of open elements that may change the namespace: svg, math and, inside of those, the elements
// that contain HTML (the standard's integration points). It replaces the stack of open elements of the standard's tree
// construction.
type nesting struct {
	stack [maxNesting]nested
	depth int
}

// A nested is an open element with the namespace of its content.
type nested struct {
	tag   tag
	space namespace
}

func (n *nesting) space() namespace {
	if n.depth == 0 {
		return inHTML
	}
	return n.stack[n.depth-1].space
}

// foreign reports whether the current position is in SVG or MathML.
func (n *nesting) foreign() bool { return n.space() != inHTML }

// open processes a start tag and returns its namespace.
func (n *nesting) open(s *scanner) namespace {
	if n.foreign() && s.breaksOut() {
		n.leave()
	}
	space := n.space()
	noted := space == inMath && n.stack[n.depth-1].tag == tagAnnotation
	within := space
	switch s.tag {
	case tagSVG:
		if space == inHTML || noted { // elsewhere in MathML, svg is an unknown MathML element
			space, within = inSVG, inSVG
		}
	case tagMath:
		if space == inHTML {
			space, within = inMath, inMath
		}
	case tagTitle, tagSVGText, tagMathText, tagAnnotation:
		switch {
		case s.holdsHTML(space):
			within = inHTML
		case s.tag != tagAnnotation || space != inMath:
			return space
		}
	default:
		return space
	}
	if !s.selfClosing && n.depth < maxNesting {
		n.stack[n.depth] = nested{s.tag, within}
		n.depth++
	}
	return space
}

// close processes an end tag. An end tag of an element that cannot be open in SVG or MathML leaves them.
func (n *nesting) close(t tag, xml bool) {
	for i := n.depth; i > 0; i-- {
		if n.stack[i-1].tag == t {
			n.depth = i - 1
			return
		}
	}
	if n.foreign() && t.isHTML() && !xml {
		n.leave()
	}
}

// leave closes the SVG and MathML elements at the top of the stack.
func (n *nesting) leave() {
	for n.foreign() {
		n.depth--
	}
}

// breaksOut reports whether the start tag cannot be in SVG or MathML.
func (s *scanner) breaksOut() bool {
	if s.tag == tagFont {
		return s.have&(1<<attrFont) != 0 && !s.xml
	}
	return s.tag.isHTML() && !s.xml
}

// holdsHTML reports whether the element contains HTML although it is in the given namespace.
func (s *scanner) holdsHTML(in namespace) bool {
	switch s.tag {
	case tagTitle, tagSVGText:
		return in == inSVG
	case tagMathText:
		return in == inMath
	case tagAnnotation:
		encoding, _ := s.attr(attrEncoding)
		return in == inMath && (equalFold(encoding, "text/html") || equalFold(encoding, xhtml))
	}
	return false
}

package mime

import "bytes"

// feedType detects RSS and Atom in a body declared as HTML, by the standard's section 7.3; "" if it is neither.
func feedType(body []byte) string {
	in := bytes.TrimPrefix(body, []byte("\xEF\xBB\xBF"))
	for {
		in = bytes.TrimLeft(in, "\t\n\f\r ")
		var ok bool
		switch {
		case bytes.HasPrefix(in, []byte("<!--")):
			_, in, ok = bytes.Cut(in[4:], []byte("-->"))
		case bytes.HasPrefix(in, []byte("<!")):
			_, in, ok = bytes.Cut(in[2:], []byte(">"))
		case bytes.HasPrefix(in, []byte("<?")):
			_, in, ok = bytes.Cut(in[2:], []byte("?>"))
		case bytes.HasPrefix(in, []byte("<rss")):
			return "application/rss+xml"
		case bytes.HasPrefix(in, []byte("<feed")):
			return "application/atom+xml"
		case bytes.HasPrefix(in, []byte("<rdf:RDF")) && bytes.Contains(in, []byte("http://purl.org/rss/1.0/")) &&
			bytes.Contains(in, []byte("http://www.w3.org/1999/02/22-rdf-syntax-ns#")):
			return "application/rss+xml"
		}
		if !ok {
			return ""
		}
	}
}

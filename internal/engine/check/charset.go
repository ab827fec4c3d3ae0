package check

import "kumo/internal/content/parse"

// CharsetIn is a body as it was served.
type CharsetIn struct {
	Body        []byte `json:"body_b64" need:"body_b64"`
	ContentType string `json:"content_type"`
}

// CharsetOut is what it is read with.
type CharsetOut struct {
	Name       string  `json:"name"` // by the WHATWG
	How        string  `json:"how"`  // bom, header, meta, detected or default
	Confidence float64 `json:"confidence"`
}

// Charset finds out a body's charset. What is no text is an error.
func Charset(in CharsetIn) (CharsetOut, error) {
	c := parse.DetectCharset(in.Body, in.ContentType)
	if t := binaryType(in.Body, c); t != "" {
		return CharsetOut{}, bodyError(t, "which is no text and has no charset")
	}
	return CharsetOut(c), nil
}

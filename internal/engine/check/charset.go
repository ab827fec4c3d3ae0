package check

import "kumo/internal/content/parse"

// CharsetIn is a body as it was received.
type CharsetIn struct {
	Body        []byte `json:"body_b64" need:"body_b64"`
	ContentType string `json:"content_type"`
}

// CharsetOut is the body's charset.
type CharsetOut struct {
	Name       string  `json:"name"` // WHATWG name
	How        string  `json:"how"`  // bom, header, meta, detected or default
	Confidence float64 `json:"confidence"`
}

// Charset detects a body's charset. A body that is not text is an error.
func Charset(in CharsetIn) (CharsetOut, error) {
	c := parse.DetectCharset(in.Body, in.ContentType)
	if t := binaryType(in.Body, c); t != "" {
		return CharsetOut{}, bodyError(t, "which is not text and has no charset")
	}
	return CharsetOut(c), nil
}

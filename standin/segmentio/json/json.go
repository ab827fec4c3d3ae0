// Package json has the JSON decoder that the Go SDK of MCP uses because encoding/json matches the names of members in
// any case: two readers of one message would then read different values.
package json

import (
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	v1 "github.com/go-json-experiment/json/v1"
)

// A Decoder reads JSON values as encoding/json does, but for the case of names.
type Decoder struct {
	in      *jsontext.Decoder
	options []json.Options
}

// NewDecoder returns a decoder of what r reads.
func NewDecoder(r io.Reader) *Decoder {
	options := []json.Options{v1.DefaultOptionsV1()}
	return &Decoder{jsontext.NewDecoder(r, options...), options}
}

// DontMatchCaseInsensitiveStructFields has members set fields of structs only if their names are equal, case included.
func (d *Decoder) DontMatchCaseInsensitiveStructFields() {
	d.options = append(d.options, json.MatchCaseInsensitiveNames(false))
}

// Decode reads the next value into v.
func (d *Decoder) Decode(v any) error { return json.UnmarshalDecode(d.in, v, d.options...) }

package ngram

import (
	"bufio"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// A Model has a classifier for each script that several languages share, and finer classifiers for closely related
// languages.
type Model struct {
	Classifiers []*Classifier
}

// header describes a classifier in a model file; its weights follow separately.
type header struct {
	Script  string
	Finer   bool `json:",omitempty"`
	Shape   Shape
	Classes []string
	Bias    []float32
	Scale   float32
}

// Write writes a model, deflated: a line of JSON with the headers, then the weights by class and bucket, so that
// similar values are adjacent.
func (m *Model) Write(w io.Writer) error {
	z, err := flate.NewWriter(w, flate.BestCompression)
	if err != nil {
		return fmt.Errorf("write language model: %w", err)
	}
	var heads []header
	for _, c := range m.Classifiers {
		heads = append(heads, header{c.Script.String(), c.Finer, c.Shape, c.Classes, c.Bias, c.Scale})
	}
	if err := json.NewEncoder(z).Encode(heads); err != nil {
		return fmt.Errorf("write header of language model: %w", err)
	}
	for _, c := range m.Classifiers {
		for class := range c.Classes {
			if _, err := z.Write(c.column(class)); err != nil {
				return fmt.Errorf("write weights for %s: %w", c.Classes[class], err)
			}
		}
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("write language model: %w", err)
	}
	return nil
}

func (c *Classifier) column(class int) []byte {
	stride, out := c.Stride(), make([]byte, 1<<c.Shape.Bits)
	for b := range out {
		out[b] = byte(c.Weights[b*stride+class/Lanes] >> (8 * (class % Lanes)))
	}
	return out
}

// ErrModel reports data that is not a language model.
var ErrModel = errors.New("not a language model")

// Read reads a model written by Write.
func Read(r io.Reader) (*Model, error) {
	buf := bufio.NewReader(flate.NewReader(r))
	line, err := buf.ReadBytes('\n')
	if err != nil {
		return nil, fmt.Errorf("read header of language model: %w", err)
	}
	var heads []header
	if err := json.Unmarshal(line, &heads); err != nil {
		return nil, fmt.Errorf("%w: header: %w", ErrModel, err)
	}
	m := &Model{}
	for _, h := range heads {
		c, err := h.classifier(buf)
		if err != nil {
			return nil, err
		}
		m.Classifiers = append(m.Classifiers, c)
	}
	return m, nil
}

// classifier reads the weights for a header.
func (h header) classifier(r io.Reader) (*Classifier, error) {
	c := &Classifier{Finer: h.Finer, Shape: h.Shape, Classes: h.Classes, Bias: h.Bias, Scale: h.Scale,
		Script: Script(max(0, slices.Index(names[:], h.Script)))}
	if c.Script == Zyyy || len(c.Classes) == 0 || len(c.Classes) > MaxClasses || len(c.Bias) != len(c.Classes) ||
		h.Shape.Bits < 1 || h.Shape.Bits > 20 || h.Shape.Min < 1 || h.Shape.Max > 4 {
		return nil, fmt.Errorf("%w: header of %q out of range", ErrModel, h.Script)
	}
	stride := c.Stride()
	c.Weights = make([]uint64, stride<<c.Shape.Bits)
	column := make([]byte, 1<<c.Shape.Bits)
	for class := range c.Classes {
		if _, err := io.ReadFull(r, column); err != nil {
			return nil, fmt.Errorf("read weights for %s: %w", c.Classes[class], err)
		}
		for b, w := range column {
			c.Weights[b*stride+class/Lanes] |= uint64(w) << (8 * (class % Lanes))
		}
	}
	return c, nil
}

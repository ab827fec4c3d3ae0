// Package varint encodes and decodes the messages between nodes.
//
// A message is a sequence of fields without separators. Numbers are varints; strings and bytes are preceded by their
// length.
package varint

import "encoding/binary"

// A Writer is the encoded message so far.
type Writer []byte

// Uint writes a number.
func (w *Writer) Uint(n uint64) { *w = binary.AppendUvarint(*w, n) }

// Int writes a number that may be negative.
func (w *Writer) Int(n int64) { *w = binary.AppendVarint(*w, n) }

// Byte writes one byte.
func (w *Writer) Byte(b byte) { *w = append(*w, b) }

// Bytes writes the length of b, then b.
func (w *Writer) Bytes(b []byte) {
	w.Uint(uint64(len(b)))
	*w = append(*w, b...)
}

// String writes a string.
func (w *Writer) String(s string) {
	w.Uint(uint64(len(s)))
	*w = append(*w, s...)
}

// Bool writes a byte, 0 or 1.
func (w *Writer) Bool(v bool) { w.Flags(v) }

// Flags writes up to eight bools as one byte, starting at the lowest bit.
func (w *Writer) Flags(all ...bool) {
	var f byte
	for i, set := range all {
		if set {
			f |= 1 << i
		}
	}
	w.Byte(f)
}

// Suffix writes the length of the prefix that s shares with before, then the rest of s. The reader must have before.
func (w *Writer) Suffix(s, before string) {
	n := 0
	for n < len(s) && n < len(before) && s[n] == before[n] {
		n++
	}
	w.Uint(uint64(n))
	w.String(s[n:])
}

// A Reader reads fields from the front of Rest. After the first missing or damaged field, Bad is set and all fields are
// zero.
type Reader struct {
	Rest []byte
	Bad  bool
}

// Uint reads a number.
func (r *Reader) Uint() uint64 {
	n, size := binary.Uvarint(r.Rest)
	if size <= 0 {
		r.Bad, r.Rest = true, nil
		return 0
	}
	r.Rest = r.Rest[size:]
	return n
}

// UintMax reads a number. A number above most is treated as damaged.
func (r *Reader) UintMax(most uint64) uint64 {
	n := r.Uint()
	if n > most {
		r.Bad, r.Rest = true, nil
		return 0
	}
	return n
}

// Count reads the number of elements that follow. Each element must take at least one byte.
func (r *Reader) Count() int { return int(r.UintMax(uint64(len(r.Rest)))) }

// Fixed reads 64 bits, little-endian.
func (r *Reader) Fixed() uint64 {
	if b := r.Take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// Int reads a number that may be negative.
func (r *Reader) Int() int64 {
	n, size := binary.Varint(r.Rest)
	if size <= 0 {
		r.Bad, r.Rest = true, nil
		return 0
	}
	r.Rest = r.Rest[size:]
	return n
}

// Byte reads one byte.
func (r *Reader) Byte() byte {
	if len(r.Rest) == 0 {
		r.Bad = true
		return 0
	}
	b := r.Rest[0]
	r.Rest = r.Rest[1:]
	return b
}

// Bytes reads a length, then as many bytes. The result is a part of Rest.
func (r *Reader) Bytes() []byte { return r.Take(r.Uint()) }

// Take reads n bytes. The result is a part of Rest.
func (r *Reader) Take(n uint64) []byte {
	if n > uint64(len(r.Rest)) {
		r.Bad, r.Rest = true, nil
		return nil
	}
	b := r.Rest[:n:n]
	r.Rest = r.Rest[n:]
	return b
}

// String reads a string.
func (r *Reader) String() string { return string(r.Bytes()) }

// Suffix reads a string that Writer.Suffix wrote with the same before. The string may have at most most bytes.
func (r *Reader) Suffix(before string, most int) string {
	n, more := r.Uint(), r.Bytes()
	if r.Bad || n > uint64(len(before)) || int(n)+len(more) > most {
		r.Bad, r.Rest = true, nil
		return ""
	}
	if len(more) == 0 {
		return before[:n]
	}
	return before[:n] + string(more)
}

// Bool reads a byte; any value except 0 is true.
func (r *Reader) Bool() bool { return r.Byte() != 0 }

// Complete reports whether all fields were present and nothing is left.
func (r *Reader) Complete() bool { return !r.Bad && len(r.Rest) == 0 }

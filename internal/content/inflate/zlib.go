package inflate

// Zlib decodes zlib's format, or a bare stream: what servers call deflate is one or the other. The checksum and
// whatever follows are not looked at, as in browsers.
func (d *Decoder) Zlib(dst, src []byte, limit int) (out []byte, err error) {
	if zlibHeader(src) {
		src = src[2:]
	}
	out, _, err = d.Deflate(dst, src, limit)
	return out, err
}

// zlibHeader is true for that of RFC 1950 without a dictionary. A bare stream that begins so would be a stored block
// with bits set in its padding, which no writer makes.
func zlibHeader(src []byte) bool {
	return len(src) >= 2 && src[0]&0x8f == 8 && (int(src[0])<<8|int(src[1]))%31 == 0 && src[1]&0x20 == 0
}

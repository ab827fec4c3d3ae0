package inflate

// Zlib decodes a zlib stream or a bare stream: servers use the name deflate for both. Like browsers, it ignores the
// checksum and any data after the stream.
func (d *Decoder) Zlib(dst, src []byte, limit int) (out []byte, err error) {
	if zlibHeader(src) {
		src = src[2:]
	}
	out, _, err = d.Deflate(dst, src, limit)
	return out, err
}

// zlibHeader reports whether src begins with a header of RFC 1950 without a dictionary. A bare stream with the same
// beginning would be a stored block with nonzero padding, which no encoder writes.
func zlibHeader(src []byte) bool {
	return len(src) >= 2 && src[0]&0x8f == 8 && (int(src[0])<<8|int(src[1]))%31 == 0 && src[1]&0x20 == 0
}

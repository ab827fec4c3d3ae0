// Package inflate decodes DEFLATE (RFC 1951), gzip (RFC 1952) and zlib (RFC 1950) streams that are completely in
// memory.
//
// A crawl has its bodies in memory. This makes decoding fast: there is no reader that may run dry, and no window
// besides the output.
//
// A Decoder's methods decode a stream and append the output to a slice, at most limit bytes. Lengths and limits are in
// bytes. The methods may overwrite bytes between the slice's length and its capacity, beyond the end of the output,
// too. On an error they return the output so far, and one of
//
//   - ErrCorrupt: the stream violates the rules of DEFLATE,
//   - ErrHeader: the stream does not begin with a gzip header, and nothing was decoded,
//   - ErrGarbage: the stream begins with a gzip member, but other data follows a member,
//   - ErrChecksum: a member's length or checksum does not match its trailer,
//   - ErrLimit: the output exceeds limit; exactly limit bytes were appended,
//   - io.ErrUnexpectedEOF: the stream is truncated.
//
// The package accepts the streams that both compress/flate and zlib accept. Codes must be complete, except for a single
// code of one bit. A distance tree may be empty if it is not used.
//
// The method is that of Eric Biggers's libdeflate and of Fabian Giesen's notes on reading bits
// (https://fgiesen.wordpress.com/2018/02/20/reading-bits-in-far-too-many-ways-part-2/). A 64-bit buffer of input is
// refilled without a branch. Table entries hold the whole meaning of a code, so a lookup is one load.
// docs/decisions/inflate.md compares the package with libraries.
package inflate

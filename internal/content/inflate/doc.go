// Package inflate decodes DEFLATE streams (RFC 1951), bare or in the formats gzip (RFC 1952) and zlib (RFC 1950), that
// lie whole in memory, as the bodies of a crawl do. That is what it is fast by: no reader that may run dry, no window
// beside the output.
//
// A Decoder's methods take a coded stream and append what it says to a slice, at most limit bytes of it. Lengths and
// limits are in bytes. What lies between the slice's length and its capacity may be overwritten, beyond the output's
// end too. When something is wrong they return what could be decoded until there, and one of
//
//   - ErrCorrupt: the stream breaks the rules of DEFLATE,
//   - ErrHeader: it does not begin as gzip does, and nothing was decoded,
//   - ErrGarbage: it does, but what follows a member is not another one,
//   - ErrChecksum: a member has not the length or the checksum that it claims to have,
//   - ErrLimit: there is more than limit allows; exactly limit bytes were appended,
//   - io.ErrUnexpectedEOF: the stream is cut.
//
// Which streams are good is what compress/flate and zlib agree on: codes are complete, other than a single code of one
// bit, and a tree of distances may be empty if it is not used.
//
// The method is that of Eric Biggers's libdeflate and of Fabian Giesen's notes on reading bits
// (https://fgiesen.wordpress.com/2018/02/20/reading-bits-in-far-too-many-ways-part-2/): 64 bits of input at hand that
// are filled up without a branch, and tables whose entries hold all that a code means, so that a look-up is one load.
// docs/decisions/inflate.md compares it with libraries.
package inflate

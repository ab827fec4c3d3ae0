package mime

import "bytes"

// A signature is the beginning of bodies of a type. If mask is not empty, it is applied to the body first.
type signature struct{ pattern, mask, essence string }

var texts = []signature{
	{"%!PS-Adobe-", "", "application/postscript"},
	{"\xFE\xFF\x00\x00", "\xFF\xFF\x00\x00", "text/plain"},
	{"\xFF\xFE\x00\x00", "\xFF\xFF\x00\x00", "text/plain"},
	{"\xEF\xBB\xBF\x00", "\xFF\xFF\xFF\x00", "text/plain"},
}

var images = []signature{
	{"\x00\x00\x01\x00", "", "image/x-icon"},
	{"\x00\x00\x02\x00", "", "image/x-icon"},
	{"BM", "", "image/bmp"},
	{"GIF87a", "", "image/gif"},
	{"GIF89a", "", "image/gif"},
	{"RIFF\x00\x00\x00\x00WEBPVP", "\xFF\xFF\xFF\xFF\x00\x00\x00\x00\xFF\xFF\xFF\xFF\xFF\xFF", "image/webp"},
	{"\x89PNG\r\n\x1A\n", "", "image/png"},
	{"\xFF\xD8\xFF", "", "image/jpeg"},
}

var sounds = []signature{
	{"FORM\x00\x00\x00\x00AIFF", "\xFF\xFF\xFF\xFF\x00\x00\x00\x00\xFF\xFF\xFF\xFF", "audio/aiff"},
	{"ID3", "", "audio/mpeg"},
	{"OggS\x00", "", "application/ogg"},
	{"MThd\x00\x00\x00\x06", "", "audio/midi"},
	{"RIFF\x00\x00\x00\x00AVI ", "\xFF\xFF\xFF\xFF\x00\x00\x00\x00\xFF\xFF\xFF\xFF", "video/avi"},
	{"RIFF\x00\x00\x00\x00WAVE", "\xFF\xFF\xFF\xFF\x00\x00\x00\x00\xFF\xFF\xFF\xFF", "audio/wave"},
}

var fonts = []signature{
	{string(make([]byte, 34)) + "LP", string(make([]byte, 34)) + "\xFF\xFF", "application/vnd.ms-fontobject"},
	{"\x00\x01\x00\x00", "", "font/ttf"},
	{"OTTO", "", "font/otf"},
	{"ttcf", "", "font/collection"},
	{"wOFF", "", "font/woff"},
	{"wOF2", "", "font/woff2"},
}

var archives = []signature{
	{"\x1F\x8B\x08", "", "application/x-gzip"},
	{"PK\x03\x04", "", "application/zip"},
	{"Rar \x1A\x07\x00", "", "application/x-rar-compressed"},
	// the standard lacks this signature, with which RAR files actually begin
	{"Rar!\x1A\x07", "", "application/x-rar-compressed"},
}

// match returns the type of the first matching signature, "" if there is none.
func match(signatures []signature, body []byte) string {
	for _, s := range signatures {
		if s.matches(body) {
			return s.essence
		}
	}
	return ""
}

func (s signature) matches(body []byte) bool {
	if len(body) < len(s.pattern) {
		return false
	}
	if s.mask == "" {
		return string(body[:len(s.pattern)]) == s.pattern
	}
	for i := range len(s.pattern) {
		if body[i]&s.mask[i] != s.pattern[i] {
			return false
		}
	}
	return true
}

// mediaType detects audio and video, by the standard's section 6.2.
func mediaType(body []byte) string {
	switch essence := match(sounds, body); {
	case essence != "":
		return essence
	case isMP4(body):
		return "video/mp4"
	case isWebM(body):
		return "video/webm"
	case isMP3(body):
		return "audio/mpeg"
	}
	return ""
}

// isMP4 detects a file type box with a brand that begins with "mp4".
func isMP4(body []byte) bool {
	if len(body) < 12 || string(body[4:8]) != "ftyp" {
		return false
	}
	size := int(body[0])<<24 | int(body[1])<<16 | int(body[2])<<8 | int(body[3])
	if len(body) < size || size%4 != 0 {
		return false
	}
	if string(body[8:11]) == "mp4" {
		return true
	}
	for i := 16; i < size; i += 4 {
		if string(body[i:i+3]) == "mp4" {
			return true
		}
	}
	return false
}

// isWebM detects an EBML header with the document type "webm".
func isWebM(body []byte) bool {
	if !bytes.HasPrefix(body, []byte("\x1A\x45\xDF\xA3")) {
		return false
	}
	for i := 4; i+1 < min(len(body), 38); i++ {
		if body[i] == 0x42 && body[i+1] == 0x82 {
			i += 2
			if i >= len(body) {
				return false
			}
			i += vintLen(body[i])
			return i < len(body) && bytes.HasPrefix(bytes.TrimLeft(body[i:], "\x00"), []byte("webm"))
		}
	}
	return false
}

// vintLen returns the length of the EBML number that begins with c.
func vintLen(c byte) (n int) {
	for n = 1; n < 8 && c&(0x80>>(n-1)) == 0; n++ {
	}
	return n
}

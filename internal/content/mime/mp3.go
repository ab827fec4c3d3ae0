package mime

// Bit rates in bit/s by the index in an MPEG audio header, for layer III of version 1 and of versions 2 and 2.5.
var (
	rates1 = [16]int{0, 32000, 40000, 48000, 56000, 64000, 80000, 96000, 112000, 128000, 160000, 192000, 224000, 256000,
		320000}
	rates2 = [16]int{0, 8000, 16000, 24000, 32000, 40000, 48000, 56000, 64000, 80000, 96000, 112000, 128000, 144000,
		160000}
)

var sampleRates = [4]int{44100, 48000, 32000}

// isMP3 detects an MP3 without ID3: it begins with two consecutive MPEG audio frames.
func isMP3(body []byte) bool {
	if !isFrame(body) {
		return false
	}
	size := frameSize(body)
	return size >= 4 && size <= len(body) && isFrame(body[size:])
}

// isFrame reports whether the bytes begin with the header of a layer III frame.
func isFrame(in []byte) bool {
	return len(in) >= 4 && in[0] == 0xFF && in[1]&0xE0 == 0xE0 &&
		in[1]&0x06>>1 == 1 && in[2]&0xF0>>4 != 15 && in[2]&0x0C>>2 != 3
}

func frameSize(in []byte) int {
	version, rate := in[1]&0x18>>3, in[2]&0xF0>>4
	bits, scale := rates1[rate], 144
	if version&1 == 0 {
		bits, scale = rates2[rate], 72
	}
	size := bits * scale / sampleRates[in[2]&0x0C>>2]
	if in[2]&0x02 != 0 {
		size++
	}
	return size
}

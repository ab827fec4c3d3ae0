package settings

import (
	"bytes"
	"fmt"
	"hash/crc32"

	"kumo/internal/base/yaml"
)

// A copy of config.yaml lies in the folder state, with a checksum behind it, so that settings that were damaged can be
// put back.

const checksumMark = "# crc32c "

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendChecksum adds a checksum to what Encode has written.
func AppendChecksum(text []byte) []byte {
	return fmt.Appendf(bytes.Clone(text), "%s%08x\n", checksumMark, crc32.Checksum(text, castagnoli))
}

// ReadChecked reads a file of what Keep has made; false if it is not as it was written.
func ReadChecked(name string) ([]byte, bool) {
	all, err := yaml.ReadFile(name)
	i := bytes.LastIndex(all, []byte(checksumMark))
	if err != nil || i < 0 {
		return nil, false
	}
	text := all[:i]
	return text, string(all[i:]) == fmt.Sprintf("%s%08x\n", checksumMark, crc32.Checksum(text, castagnoli))
}

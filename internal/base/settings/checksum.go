package settings

import (
	"bytes"
	"fmt"
	"hash/crc32"

	"kumo/internal/base/yaml"
)

// The folder state has a copy of config.yaml that ends with a checksum. It replaces damaged settings.

const checksumMark = "# crc32c "

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendChecksum returns text, as Encode writes it, with a checksum line at its end.
func AppendChecksum(text []byte) []byte {
	return fmt.Appendf(bytes.Clone(text), "%s%08x\n", checksumMark, crc32.Checksum(text, castagnoli))
}

// ReadChecked reads a file written by AppendChecksum. It returns the text without the checksum line, and false if the
// file is damaged or cannot be read.
func ReadChecked(name string) ([]byte, bool) {
	all, err := yaml.ReadFile(name)
	i := bytes.LastIndex(all, []byte(checksumMark))
	if err != nil || i < 0 {
		return nil, false
	}
	text := all[:i]
	return text, string(all[i:]) == fmt.Sprintf("%s%08x\n", checksumMark, crc32.Checksum(text, castagnoli))
}

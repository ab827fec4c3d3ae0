package settings

import (
	"bytes"
	"fmt"
	"hash/crc32"

	"kumo/internal/base/yaml"
)

// A copy of config.yaml lies in the folder state, with a checksum behind it, so that settings that were damaged can be
// put back.

const keptMark = "# crc32c "

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Keep adds a checksum to what Encode has written.
func Keep(text []byte) []byte {
	return fmt.Appendf(bytes.Clone(text), "%s%08x\n", keptMark, crc32.Checksum(text, castagnoli))
}

// ReadKept reads a file of what Keep has made; false if it is not as it was written.
func ReadKept(name string) ([]byte, bool) {
	all, err := yaml.ReadFile(name)
	i := bytes.LastIndex(all, []byte(keptMark))
	if err != nil || i < 0 {
		return nil, false
	}
	text := all[:i]
	return text, string(all[i:]) == fmt.Sprintf("%s%08x\n", keptMark, crc32.Checksum(text, castagnoli))
}

package warc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"kumo/internal/base/page"
	"kumo/internal/state/store/storetest"
)

// warcioScript checks all digests with warcio and prints type, target and payload size of each record.
const warcioScript = `
import sys
from warcio.archiveiterator import ArchiveIterator
n = 0
with open(sys.argv[1], 'rb') as f:
    for record in ArchiveIterator(f, check_digests='raise'):
        record.content_stream().read()
        n += 1
print(n)
`

// fastwarcScript does the same with FastWARC, which is independent of warcio.
const fastwarcScript = `
import sys
from fastwarc.warc import ArchiveIterator
n = 0
for record in ArchiveIterator(open(sys.argv[1], 'rb'), parse_http=False):
    kind = record.headers['WARC-Type']
    if not record.verify_block_digest():
        sys.exit('block digest of %s' % record.headers)
    if kind in ('request', 'response', 'revisit'):
        record.parse_http(quirks_mode=True)
    if kind == 'response' and 'WARC-Payload-Digest' in record.headers and not record.verify_payload_digest():
        sys.exit('payload digest of %s' % record.headers)
    n += 1
print(n)
`

// TestOtherReaders reads all kinds of records with two independent readers.
func TestOtherReaders(t *testing.T) {
	for module, script := range map[string]string{"warcio": warcioScript, "fastwarc": fastwarcScript} {
		t.Run(module, func(t *testing.T) {
			needModule(t, module)
			for _, compression := range []string{"gzip", "none"} {
				checkWith(t, script, compression)
			}
			if module == "fastwarc" {
				checkWith(t, script, "zstd")
			}
		})
	}
}

func checkWith(t *testing.T, script, compression string) {
	t.Helper()
	dir := t.TempDir()
	s := openTest(t, dir, func(c *Config) { c.Compression = compression })
	var last *page.Record
	for _, rec := range odd() {
		put(t, s, rec)
		last = rec
	}
	put(t, s, storetest.Record(1))
	closeTest(t, s)
	out, err := exec.Command("python3", "-c", script, filepath.Join(dir, "warc", last.Location.File)).CombinedOutput()
	if want := fmt.Sprintln(1 + 3*(len(odd())+1)); err != nil || string(out) != want {
		t.Errorf("%s: %v, read %q, want %q", compression, err, out, want)
	}
}

// needModule skips the test if the Python module is not installed, but not in CI.
func needModule(t *testing.T, module string) {
	t.Helper()
	err := exec.Command("python3", "-c", "import "+module).Run()
	switch {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatalf("python3 has no module %s: %v", module, err)
	default:
		t.Skipf("SKIPPED: the check by another reader needs python3 with the module %s: %v", module, err)
	}
}

package warc

import (
	"testing"

	"kumo/internal/base/vfs"
	"kumo/internal/state/store"
	"kumo/internal/state/store/storetest"
)

func TestContract(t *testing.T) {
	for _, compression := range []string{"gzip", "zstd", "none"} {
		t.Run(compression, func(t *testing.T) {
			storetest.Run(t, func(disk vfs.FS, dir string, marks []store.Mark) (store.Store, error) {
				return Open(disk, Config{Dir: dir, Name: "test", Hostname: "host", MaxSize: 50_000, Compression: compression},
					marks)
			})
		})
	}
}

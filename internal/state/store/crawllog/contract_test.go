package crawllog

import (
	"testing"

	"kumo/internal/base/vfs"
	"kumo/internal/state/store"
	"kumo/internal/state/store/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(disk vfs.FS, dir string, marks []store.Mark) (store.Store, error) {
		return Open(disk, Config{Dir: dir}, marks)
	})
}

package jsonl

import (
	"testing"

	"kumo/internal/store"
	"kumo/internal/store/storetest"
	"kumo/internal/vfs"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(disk vfs.FS, dir string, marks []store.Mark) (store.Store, error) {
		return Open(disk, Config{Dir: dir}, marks)
	})
}

package memory_test

import (
	"testing"

	"kumo/internal/base/vfs"
	"kumo/internal/state/journal"
	"kumo/internal/state/journal/journaltest"
	"kumo/internal/state/journal/memory"
)

func TestContract(t *testing.T) {
	journaltest.Run(t, func(*testing.T) journaltest.Open {
		j := memory.New()
		return func(vfs.FS) (journal.Journal, error) { return j, nil }
	})
}

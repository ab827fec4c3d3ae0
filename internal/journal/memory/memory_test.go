package memory_test

import (
	"testing"

	"kumo/internal/journal"
	"kumo/internal/journal/journaltest"
	"kumo/internal/journal/memory"
	"kumo/internal/vfs"
)

func TestContract(t *testing.T) {
	journaltest.Run(t, func(*testing.T) journaltest.Open {
		j := memory.New()
		return func(vfs.FS) (journal.Journal, error) { return j, nil }
	})
}

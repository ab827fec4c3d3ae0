package site

import (
	"testing"

	"kumo/internal/archive/export"
	"kumo/internal/archive/export/exporttest"
	"kumo/internal/archive/export/target"
)

func TestContract(t *testing.T) {
	exporttest.Run(t, func(t testing.TB, to *target.Folder) (export.Exporter, error) {
		return New(to, Config{Start: []string{"http://a.test/"}, Temp: t.TempDir()})
	})
}

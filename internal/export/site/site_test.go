package site

import (
	"testing"

	"kumo/internal/export"
	"kumo/internal/export/exporttest"
	"kumo/internal/export/target"
)

func TestContract(t *testing.T) {
	exporttest.Run(t, func(t testing.TB, to *target.Folder) (export.Exporter, error) {
		return New(to, Config{Start: []string{"http://a.test/"}, Temp: t.TempDir()})
	})
}

package history

import (
	"os"
	"testing"

	"kumo/internal/lab/testmain"
)

func TestMain(m *testing.M) {
	scanURLs = 16
	os.Exit(testmain.M{M: m}.Run())
}

package history

import (
	"os"
	"testing"

	"kumo/internal/testmain"
)

func TestMain(m *testing.M) {
	scanURLs = 16
	os.Exit(testmain.M{M: m}.Run())
}

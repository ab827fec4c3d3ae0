package lists

import (
	"os"
	"testing"

	"kumo/internal/lab/testmain"
)

func TestMain(m *testing.M) { os.Exit(testmain.M{M: m}.Run()) }

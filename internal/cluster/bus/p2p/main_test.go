package p2p

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"kumo/internal/lab/testmain"
)

func TestMain(m *testing.M) {
	if settings := os.Getenv(processVar); settings != "" {
		os.Exit(process(settings, os.Stdin, os.Stdout))
	}
	goleak.VerifyTestMain(testmain.M{M: m, PerProcessor: 2})
}

package natsbus

import (
	"testing"

	"go.uber.org/goleak"

	"kumo/internal/lab/testmain"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testmain.M{M: m, PerProcessor: 4}) }

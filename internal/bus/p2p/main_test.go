package p2p

import (
	"testing"

	"go.uber.org/goleak"

	"kumo/internal/testmain"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testmain.M{M: m, PerProcessor: 2}) }

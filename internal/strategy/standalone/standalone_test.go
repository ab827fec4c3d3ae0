package standalone_test

import (
	"strings"
	"testing"

	"kumo/internal/strategy"
	"kumo/internal/strategy/standalone"
	"kumo/internal/strategy/strategytest"
)

func TestContract(t *testing.T) {
	strategytest.Run(t, func() strategy.Strategy { return standalone.New("a~1") })
}

// TestOwnsAll: it owns every host before it was told anything.
func TestOwnsAll(t *testing.T) {
	for _, host := range []string{"", "example.com", "[2001:db8::1]:81"} {
		if owner, state := standalone.New("a~1").View().Owner(host); owner != "a~1" || state != strategy.Owned {
			t.Errorf("%q is %q's, state %v", host, owner, state)
		}
	}
}

func TestSnapshotOfAnother(t *testing.T) {
	if err := standalone.New("a~1").Restore(strings.NewReader("hub")); err == nil {
		t.Error("the snapshot of another strategy is taken")
	}
}

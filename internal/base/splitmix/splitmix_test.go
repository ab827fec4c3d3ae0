package splitmix

import "testing"

func TestNext(t *testing.T) {
	if got := Next(0); got != 0xe220a8397b1dcdaf { // the generator's first number for the seed 0
		t.Errorf("Next(0) = %#x", got)
	}
}

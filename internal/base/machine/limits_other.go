//go:build !linux

package machine

import "github.com/pbnjay/memory"

func deviceOf(string) string { return "" }

func (l *Limits) read() Resources {
	return Resources{Cores: processors(), MemoryGB: float64(memory.TotalMemory()) / gigabyte}
}

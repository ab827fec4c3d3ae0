//go:build !linux

package machine

import "github.com/pbnjay/memory"

func deviceOf(string) string { return "" }

func (l *Limits) read() Figures {
	return Figures{Cores: processors(), MemoryGB: float64(memory.TotalMemory()) / gigabyte}
}

package bustest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"testing"
)

// Addresses returns n loopback addresses whose ports, and the next ones, are free, and stay free although nobody
// listens on them. On a system with all of 127.0.0.0/8, no other test uses these addresses. Elsewhere the ports are
// below the ephemeral ones.
func Addresses(t testing.TB, n int) (all []string) {
	t.Helper()
	for tries := 0; len(all) < n; tries++ {
		if tries > 100*n {
			t.Fatal("no free ports on loopback addresses")
		}
		host := fmt.Sprintf("127.%d.%d.%d", 200+rand.IntN(50), rand.IntN(250), 1+rand.IntN(250))
		if tries%2 == 1 {
			host = "127.0.0.1"
		}
		port := 15000 + 2*rand.IntN(8000)
		one := address(host, port)
		if isFree(one) && isFree(address(host, port+1)) && !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}

func address(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

func isFree(address string) bool {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return false
	}
	l.Close()
	return true
}

module kumo/bench/peers

go 1.26.0

require (
	github.com/google/pprof v0.0.0-20260906184651-6331bc6350fe
	github.com/klauspost/compress v1.20.3
	golang.org/x/net v0.62.0
	kumo v0.0.0
)

require (
	github.com/miekg/dns v1.1.73 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
)

replace kumo => ../..

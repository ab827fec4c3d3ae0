// Package netlab is a network of several hosts on one machine, for tests of processes that talk to each other: each
// host is a Linux network namespace with an address of its own, and what is between them can be cut, slowed down,
// delayed and made to lose packets. It needs root, the programs ip and tc (iproute2), and nothing of the kernel beyond
// namespaces, veth, bridges and tbf.
//
// All hosts hang on one bridge. Which way the packets of a pair take is decided by the sender's entry for the
// receiver's address in its table of neighbours: the receiver's own MAC address; one that nobody has, and they are lost
// without a word, as on a cable that was cut; or that of the proxy, a port of the bridge from which this process reads
// packets and to which it writes them back, later or never. So a partition need not be in both directions, and programs
// need not know of the proxy, whatever they speak. The proxy looks up both addresses of a packet, so that one host of
// many addresses can stand for as many, each as far from another host as it is to be. It is one thread, and takes about
// a hundredth of a processor for a thousand packets a second.
//
// Connections between hosts use TCP's oldest way with congestion, Reno, whatever the machine's is.
//
// A host can also hang on another one that is its router, as computers at home do.
//
// What a host's processes take of this machine can be limited: processor time and memory by control groups, and a disk
// that is a file, as a device of its own that takes so many bytes a second. That needs control groups of version 1,
// losetup and mkfs.ext4.
//
// A lab leaves nothing behind: processes end with the one that started them; the namespaces of a run that was killed,
// its groups and its disks are removed by the next.
package netlab

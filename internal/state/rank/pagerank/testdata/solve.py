"""Compute PageRank by other means than kumo does.

usage: solve.py NODES JUMP EDGES VALUES

EDGES has a link a line, two numbers below NODES. VALUES gets two numbers a line and node: the solution of the spec's formula, as SciPy
has it, and what networkx says, which spreads what dangling nodes have over all.
"""

import sys

import networkx
import numpy
import scipy.sparse
import scipy.sparse.linalg

nodes, jump = int(sys.argv[1]), float(sys.argv[2])
edges = numpy.loadtxt(sys.argv[3], dtype=numpy.int64, ndmin=2)
out = numpy.bincount(edges[:, 0], minlength=nodes)
links = scipy.sparse.csr_matrix((1 / out[edges[:, 0]], (edges[:, 1], edges[:, 0])), shape=(nodes, nodes))
system = scipy.sparse.identity(nodes, format="csr") - (1 - jump) * links
right = numpy.full(nodes, jump / nodes)
formula, failed = scipy.sparse.linalg.bicgstab(system, right, rtol=1e-14, atol=0, maxiter=1000)
if failed or abs(system @ formula - right).max() > 1e-15:
    sys.exit(f"bicgstab did not solve it: {failed}")

graph = networkx.DiGraph()
graph.add_nodes_from(range(nodes))
graph.add_edges_from(map(tuple, edges.tolist()))
spread = networkx.pagerank(graph, alpha=1 - jump, tol=1e-15, max_iter=1000)
with open(sys.argv[4], "w") as f:
    for v in range(nodes):
        f.write(f"{float(formula[v])!r} {float(spread[v])!r}\n")

package sim

import "context"

// RunMesh runs a crawl, and says what must not be.
func RunMesh(cfg MeshConfig, seed uint64) (MeshFigures, []Violation) {
	w := newMeshWorld(cfg.withDefaults(), seed)
	w.run()
	return w.figures, w.violations
}

// SoakMesh runs seeds one after the other until one fails.
func SoakMesh(ctx context.Context, cfg MeshConfig, first uint64, seeds int) (sum MeshFigures, failed uint64,
	why []Violation) {
	for seed := first; seed < first+uint64(seeds) && ctx.Err() == nil; seed++ {
		f, violations := RunMesh(cfg, seed)
		sum.add(f)
		if len(violations) > 0 {
			return sum, seed, violations
		}
	}
	return sum, 0, nil
}

func (f *MeshFigures) add(g MeshFigures) {
	f.Virtual += g.Virtual
	f.Events += g.Events
	f.Faults += g.Faults
	f.Joined += g.Joined
	f.Wiped += g.Wiped
	f.NodeTime += g.NodeTime
	f.Pages += g.Pages
	f.Lost += g.Lost
	f.Requests += g.Requests
	for i, n := range g.Duplicates {
		f.Duplicates[i] += n
	}
	f.Slips += g.Slips
	f.Hasty += g.Hasty
	f.Early += g.Early
	for i := range g.Messages {
		f.Messages[i] += g.Messages[i]
		f.Bytes[i] += g.Bytes[i]
	}
	f.Bare += g.Bare
	f.Again += g.Again
	f.Recorded += g.Recorded
	f.Given += g.Given
	f.Processor += g.Processor
	f.Replayed += g.Replayed
	f.Leaps += g.Leaps
	f.LookUps.LookUps += g.LookUps.LookUps
	f.LookUps.Asked += g.LookUps.Asked
	f.LookUps.Hops += g.LookUps.Hops
}

"""The table of docs/howto/privacy.md: python -m docs.scripts.privacy_table (a minute or so)."""

import numpy as np

import d3gd
from d3gd.privacy import noise_for
from docs.scripts import between

AGENTS, BATCH, ITERATIONS, CLIP, SEEDS = 8, 32, 200, 1.0, (0, 1, 2)
METHODS = {
    "Di-DGD": d3gd.DiDGD(step_size=0.3, averaged=True),
    "PerronD3GD": d3gd.PerronD3GD(step_size=0.3),
    "Centralized": d3gd.Centralized(step_size=0.3),
}
EPSILONS = (None, 16.0, 8.0, 4.0, 2.0, 1.0)


def main() -> None:
    """Train softmax regression on digits, for several epsilons."""
    rows = ["| alpha | epsilon | noise | " + " | ".join(METHODS) + " |", "|---" * (3 + len(METHODS)) + "|"]
    for alpha in (100.0, 1.0, 0.1):
        for epsilon in EPSILONS:
            cells, noise = [], None
            for method in METHODS.values():
                found = []
                for seed in SEEDS:
                    problem = d3gd.problems.digits_classification(agents=AGENTS, alpha=alpha, batch=BATCH, seed=seed)
                    privacy = None
                    if epsilon is not None:
                        sample = BATCH / int(problem.sizes.min())
                        noise = noise_for(epsilon, steps=ITERATIONS, sample=sample)
                        privacy = d3gd.Privacy(clip=CLIP, noise=noise)
                    result = d3gd.run(
                        method,
                        d3gd.graphs.exponential(AGENTS),
                        problem,
                        iterations=ITERATIONS,
                        every=ITERATIONS,
                        seed=seed,
                        privacy=privacy,
                        metrics=["accuracy"],
                    )
                    found.append(result.metrics["accuracy"][-1])
                cells.append(f"{np.median(found):.3f}")
            told = ("none", "0") if epsilon is None else (f"{epsilon:g}", f"{noise:.1f}")
            rows.append(f"| {alpha:g} | {' | '.join((*told, *cells))} |")
    between.write("howto/privacy.md", "privacy", "\n".join(rows))


if __name__ == "__main__":
    main()

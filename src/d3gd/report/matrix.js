// The matrix of weights, for networks that are too large to draw: row = listener, column = heard; darker = larger.
class MatrixView {
  constructor(run, choose) {
    this.run = run;
    this.cells = Math.min(run.agents, 400);
    this.place = new Int32Array(run.agents);
    run.order.forEach((agent, position) => { this.place[agent] = position; });
    this.canvas = element("canvas", {
      width: this.cells, height: this.cells, role: "img", "aria-label": `weights of ${run.agents} agents`,
      pointermove: event => choose(this.agentAt(event), false), pointerleave: () => choose(null, false),
      click: event => choose(this.agentAt(event), true),
    });
    this.host = this.canvas;
  }

  agentAt(event) {
    const box = this.canvas.getBoundingClientRect(), n = this.run.agents;
    const position = Math.floor(((event.clientY - box.top) / box.height) * n);
    return this.run.order[Math.min(n - 1, Math.max(0, position))];
  }

  draw(frame, {agent}) {
    const {run, cells, place} = this, weights = run.weights.row(frame), first = run.weights.row(0), size = sizeOf(run, frame);
    const sums = new Float64Array(cells * cells), changes = new Float64Array(cells * cells);
    let most = 0;
    for (let e = 0; e < weights.length; e++) {
      const row = Math.floor((place[run.targets[e]] * cells) / run.agents);
      const column = Math.floor((place[run.sources[e]] * cells) / run.agents), at = row * cells + column;
      if (!Number.isFinite(weights[e])) continue;
      sums[at] += size.of(e);
      changes[at] += weights[e] - first[e];
      if (run.targets[e] !== run.sources[e]) most = Math.max(most, sums[at]);
    }
    const [rose, fell, same] = ["--rose", "--fell", "--same"].map(name => rgb(name));
    const context = this.canvas.getContext("2d"), image = context.createImageData(cells, cells);
    for (let at = 0; at < sums.length; at++) {
      if (sums[at] === 0 && changes[at] === 0) continue;
      const moved = Math.abs(changes[at]) > 1e-3 * run.largest;
      image.data.set(!moved ? same : changes[at] > 0 ? rose : fell, 4 * at);
      image.data[4 * at + 3] = 50 + 205 * Math.sqrt(Math.min(1, Math.max(0, sums[at]) / (most || 1)));
    }
    context.putImageData(image, 0, 0);
    if (agent !== null) {
      const row = Math.floor((place[agent] * cells) / run.agents), [r, g, b] = rgb("--accent");
      context.fillStyle = `rgba(${r},${g},${b},0.35)`;
      context.fillRect(0, row, cells, 1);
      context.fillRect(row, 0, 1, cells);
    }
  }
}

function rgb(name) {
  const hex = getComputedStyle(document.documentElement).getPropertyValue(name).trim().slice(1);
  return [0, 2, 4].map(i => parseInt(hex.slice(i, i + 2), 16));
}

// The network: width of a link = its weight, colour = rose or fell since the start, size of a node = Perron weight.
class NetworkView {
  constructor(run, choose) {
    this.run = run;
    const n = run.agents, size = 1000, room = 90;
    this.radius = Math.max(7, Math.min(34, 200 / Math.sqrt(n)));
    this.widest = Math.max(2.5, Math.min(14, 110 / Math.sqrt(n), 90 / Math.sqrt(run.links))); // of the largest weight
    this.points = run.places.map(([x, y]) => [room + x * (size - 2 * room), room + y * (size - 2 * room)]);
    this.svg = element("svg:svg", {viewBox: `0 0 ${size} ${size}`, role: "img", "aria-label": `network of ${n} agents`});
    this.links = [];
    const heads = run.links <= 700, linksLayer = element("svg:g"), nodesLayer = element("svg:g");
    for (let e = 0; e < run.sources.length; e++) {
      const [j, i] = [run.sources[e], run.targets[e]];
      if (i === j) continue;
      const shape = this.shape(this.points[j], this.points[i]);
      const path = element("svg:path", {class: "link same", d: shape.d, "data-link": `${j}-${i}`});
      const head = heads ? element("svg:path", {class: "head same", d: shape.head}) : null;
      linksLayer.append(path);
      if (head) linksLayer.append(head);
      this.links.push({e, i, j, path, head});
    }
    this.nodes = this.points.map(([x, y], i) => {
      const inner = element("svg:g"), ring = element("svg:circle", {class: "ring", r: this.radius});
      const name = element("svg:title", {}, run.names[i]);
      const node = element("svg:g", {
        class: "node", transform: `translate(${x} ${y})`, tabindex: 0, role: "button", "data-agent": i,
        "aria-label": `agent ${run.names[i]}`,
        pointerenter: () => choose(i, false), pointerleave: () => choose(null, false), click: () => choose(i, true),
        keydown: event => { if (event.key === "Enter") choose(i, true); },
      }, name, inner, ring);
      const size = n <= 30 ? 24 : 18;
      const text = n <= 60 ? element("svg:text", {"font-size": size}, shortened(run.names[i], 12)) : null;
      if (text) node.append(text);
      nodesLayer.append(node);
      return {node, inner, ring, text, size};
    });
    this.svg.append(linksLayer, nodesLayer);
    this.host = this.svg;
  }

  // A curve bent to the right of its direction, so that both directions of a pair are seen.
  shape([x0, y0], [x1, y1]) {
    const length = Math.hypot(x1 - x0, y1 - y0) || 1, [u, v] = [(x1 - x0) / length, (y1 - y0) / length];
    const bend = Math.min(40, 0.14 * length), [mx, my] = [(x0 + x1) / 2 - v * bend, (y0 + y1) / 2 + u * bend];
    const t = Math.max(0.55, 1 - (this.radius + 12) / length), s = 1 - t; // where the head is
    const px = s * s * x0 + 2 * s * t * mx + t * t * x1, py = s * s * y0 + 2 * s * t * my + t * t * y1;
    let [dx, dy] = [s * (mx - x0) + t * (x1 - mx), s * (my - y0) + t * (y1 - my)];
    const norm = Math.hypot(dx, dy) || 1;
    [dx, dy] = [(7 * dx) / norm, (7 * dy) / norm];
    const at = (a, b) => `${(px + a * dx - b * dy).toFixed(1)} ${(py + a * dy + b * dx).toFixed(1)}`;
    return {
      d: `M${x0.toFixed(1)} ${y0.toFixed(1)}Q${mx.toFixed(1)} ${my.toFixed(1)} ${x1.toFixed(1)} ${y1.toFixed(1)}`,
      head: `M${at(1.4, 0)}L${at(-1, 0.8)}L${at(-1, -0.8)}Z`,
    };
  }

  draw(frame, {agent, paint}) {
    const run = this.run, weights = run.weights.row(frame), first = run.weights.row(0), pi = run.perron.row(frame), size = sizeOf(run, frame);
    for (const {e, i, j, path, head} of this.links) {
      const weight = Number.isFinite(weights[e]) ? weights[e] : 0, change = weight - first[e], moved = Math.abs(change) > 1e-3 * run.largest;
      const kind = !moved ? "same" : change > 0 ? "rose" : "fell";
      const faint = agent !== null && agent !== i && agent !== j ? " faint" : "";
      const strength = moved ? 0.45 + 0.5 * Math.min(1, Math.abs(change) / run.largestChange) : 0.4;
      path.setAttribute("class", `link ${kind}${faint}`);
      const wide = size.of(e) || 0;
      path.setAttribute("stroke-width", Math.max(0.3, (this.widest * wide) / size.largest).toFixed(3));
      path.setAttribute("stroke-opacity", wide > 0 ? strength.toFixed(3) : 0.05);
      if (head) {
        head.setAttribute("class", `head ${kind}${faint}`);
        head.setAttribute("fill-opacity", wide > 0 ? Math.min(1, strength + 0.2).toFixed(3) : 0.05);
      }
    }
    this.nodes.forEach(({node, inner, ring, text, size}, i) => {
      const share = Number.isFinite(pi[i]) ? Math.sqrt(run.agents * pi[i]) : 1;
      const radius = this.radius * Math.min(2, Math.max(0.4, share));
      ring.setAttribute("r", radius.toFixed(2));
      if (text) text.setAttribute("y", (radius + size).toFixed(1));
      node.setAttribute("class", agent === i ? "node chosen" : "node");
      const filled = paint(run, frame, i);
      inner.replaceChildren(...(Array.isArray(filled) ? this.pie(filled, radius)
        : [element("svg:circle", {r: radius, style: `fill:${filled}`})]));
    });
  }

  pie(shares, radius) {
    let angle = -Math.PI / 2;
    return [...shares].map((share, c) => [share, CLASSES[c % CLASSES.length]]).filter(([share]) => share > 0).map(([share, fill]) => {
      if (share > 0.9999) return element("svg:circle", {r: radius, style: `fill:${fill}`});
      const [x0, y0] = [radius * Math.cos(angle), radius * Math.sin(angle)];
      angle += 2 * Math.PI * share;
      const [x1, y1] = [radius * Math.cos(angle), radius * Math.sin(angle)];
      const d = `M0 0L${x0.toFixed(2)} ${y0.toFixed(2)}A${radius} ${radius} 0 ${share > 0.5 ? 1 : 0} 1 ${x1.toFixed(2)} ${y1.toFixed(2)}Z`;
      return element("svg:path", {d, style: `fill:${fill}`});
    });
  }
}

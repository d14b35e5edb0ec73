// One agent: its weights now and at the start, its data, its curve.
function describeAgent(run, frame, agent, fixed) {
  const weights = run.weights.row(frame), first = run.weights.row(0), pi = run.perron.row(frame)[agent];
  const heard = [], hearing = [];
  let own = 0;
  for (let e = 0; e < weights.length; e++) {
    const [j, i] = [run.sources[e], run.targets[e]];
    if (i === agent && j === agent) own = weights[e];
    else if (i === agent) heard.push([j, weights[e], first[e], e]);
    else if (j === agent) hearing.push([i, weights[e], first[e], e]);
  }
  const made = [
    element("h3", {"data-shown": agent}, `agent ${run.names[agent]}${fixed ? " (fixed; click it again to release)" : ""}`),
    element("p", {class: "quiet"},
      `Perron weight × n ${number(run.agents * pi)}; weight on itself ${number(own)}; hears ${heard.length}, heard by ${hearing.length}`),
  ];
  if (run.classes) made.push(...mixOf(run.classes.row(agent)));
  if (run.losses) {
    const y = run.frames.map((_, t) => run.losses.row(t)[agent]);
    const chart = new Chart("its loss on its own data", [{x: run.frames, y, colour: "var(--c0)", name: "loss"}], {label: "iteration"});
    chart.move(run.frames[frame]);
    chart.host.className = "chart";
    made.push(chart.host);
  }
  made.push(weightTable(run, frame, "hears", heard), weightTable(run, frame, "is heard by", hearing));
  return made;
}

function mixOf(shares) {
  const parts = [...shares].map((share, c) => [share, c]).filter(([share]) => share > 0);
  const bar = element("div", {class: "mix", role: "img", "aria-label": "label mix"}, ...parts.map(([share, c]) =>
    element("span", {style: `flex:${share};background:${CLASSES[c % CLASSES.length]}`, title: `class ${c}: ${number(100 * share)} %`})));
  const largest = parts.slice().sort((a, b) => b[0] - a[0]).slice(0, 4);
  return [element("p", {class: "quiet"}, `data: ${largest.map(([share, c]) => `class ${c} ${number(100 * share)} %`).join(", ")}`
    + (parts.length > largest.length ? `, ${parts.length - largest.length} more` : "")), bar];
}

function weightTable(run, frame, title, entries) {
  const shown = entries.slice().sort((a, b) => b[1] - a[1]).slice(0, 12);
  const head = ["agent", "weight", "change", "", ...(run.sent ? ["carried"] : [])];
  const rows = shown.map(([other, weight, before, e]) => element("tr", {"data-other": other},
    element("td", {}, shortened(run.names[other], 30)), element("td", {class: "number weight"}, number(weight)),
    element("td", {class: "number quiet"}, weight === before ? "0" : `${weight > before ? "+" : "−"}${number(Math.abs(weight - before))}`),
    element("td", {}, element("span", {class: "meter", style: `width:${((5 * (weight || 0)) / run.largest).toFixed(2)}em`})),
    ...(run.sent ? [element("td", {class: "number sent"}, bytes(run.carried(frame)(e)))] : [])));
  const more = entries.length > shown.length ? ` (the ${shown.length} largest of ${entries.length})` : "";
  return element("div", {class: "table"}, element("h3", {}, `${title}${more}`),
    element("table", {class: title === "hears" ? "hears" : "heard"}, 
      element("thead", {}, element("tr", {}, ...head.map((name, i) => element("th", {scope: "col", class: i ? "number" : null}, name)))),
      element("tbody", {}, ...rows)));
}

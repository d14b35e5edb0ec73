// The page of runs: everything follows the time cursor and the agent that is pointed at or fixed.
const state = {k: 0, agent: null, fixed: null, paint: null, width: "weight", timer: null};
const page = document.getElementById("page");
const RUNS = DATA.runs.map(run => {
  const opened = {...run};
  for (const name of ["weights", "perron", "losses", "classes", "sent"]) opened[name] = unpacked(run[name]);
  for (const name of ["sources", "targets"]) opened[name] = unpacked(run[name]).values;
  opened.perAgent = Object.fromEntries(Object.entries(run.perAgent).map(([name, array]) => [name, unpacked(array)]));
  opened.largest = 1e-300;
  opened.largestChange = 1e-300;
  const first = opened.weights.row(0);
  for (let t = 0; t < run.frames.length; t++) {
    opened.weights.row(t).forEach((weight, e) => {
      if (!Number.isFinite(weight)) return; // of a run that diverged
      if (opened.sources[e] !== opened.targets[e]) opened.largest = Math.max(opened.largest, weight);
      opened.largestChange = Math.max(opened.largestChange, Math.abs(weight - first[e]));
    });
  }
  opened.most = 1e-300; // bytes along a link
  if (opened.sent) {
    opened.carried = frame => { // a function of the link
      const row = opened.sent.row(frame);
      return row.length > 1 ? e => row[e] : e => (opened.sources[e] === opened.targets[e] ? 0 : row[0]);
    };
    const last = opened.carried(run.frames.length - 1);
    for (let e = 0; e < opened.sources.length; e++) opened.most = Math.max(opened.most, last(e));
  }
  return opened;
});
// What the width of a link, or the shade of a cell, stands for.
function sizeOf(run, frame) {
  if (state.width === "bytes" && run.sent) return {of: run.carried(frame), largest: run.most};
  const weights = run.weights.row(frame);
  return {of: e => weights[e], largest: run.largest};
}

function costOf(run) {
  if (run.bytes === null || !run.links) return "";
  if (!run.sent) return `${bytes(run.bytes)} sent, ${bytes(run.bytes / run.links)} per link (mean); `;
  const last = run.carried(run.frames.length - 1);
  let least = Infinity;
  for (let e = 0; e < run.sources.length; e++) {
    if (run.sources[e] !== run.targets[e]) least = Math.min(least, last(e));
  }
  const each = least === run.most || !run.bytes ? `${bytes(least)} along each link` : `${bytes(least)} to ${bytes(run.most)} along a link`;
  return `${bytes(run.bytes)} sent, ${each}; `;
}
const TIMES = [...new Set(RUNS.flatMap(run => run.frames.length > 1 ? run.frames : run.iterations))].sort((a, b) => a - b);

// How nodes are painted: by name, a function of run, frame and agent.
const PAINTS = Object.create(null); // a metric may be called __proto__
function shareOf(values, value, log) {
  const finite = [...values].filter(each => Number.isFinite(each) && (!log || each > 0));
  let low = Infinity, high = -Infinity;
  for (const each of finite) { low = Math.min(low, each); high = Math.max(high, each); }
  const scale = log ? Math.log : each => each;
  return high > low ? (scale(value) - scale(low)) / (scale(high) - scale(low)) : 0.5;
}
if (RUNS.some(run => run.losses)) {
  PAINTS["loss on its own data"] = (run, frame, i) => run.losses
    ? ramp(1 - shareOf(run.losses.row(frame), run.losses.row(frame)[i], false)) : "var(--line)";
}
if (RUNS.some(run => run.classes)) PAINTS["label mix"] = (run, frame, i) => (run.classes ? [...run.classes.row(i)] : "var(--line)");
for (const name of new Set(RUNS.flatMap(run => Object.keys(run.perAgent)))) {
  PAINTS[name] = (run, frame, i) => {
    const row = Object.hasOwn(run.perAgent, name) && run.perAgent[name].row(upTo(run.iterations, run.frames[frame]));
    return row ? ramp(shareOf(row, row[i], false)) : "var(--line)";
  };
}
PAINTS["Perron weight"] = (run, frame, i) => ramp(shareOf(run.perron.row(frame), run.perron.row(frame)[i], false));
state.paint = Object.keys(PAINTS)[0];

function choose(agent, fix) {
  if (fix) state.fixed = state.fixed === agent ? null : agent;
  state.agent = agent;
  refresh();
}

class RunView {
  constructor(run) {
    this.run = run;
    this.view = element("div", {class: "view"});
    this.panel = element("div", {class: "agent", "aria-live": "polite"});
    this.views = {};
    if (run.places) this.views.network = new NetworkView(run, choose);
    this.views.matrix = new MatrixView(run, choose);
    this.buttons = Object.keys(this.views).map(name => element("button", {type: "button", click: () => this.show(name)}, name));
    const facts = `${run.agents} agents, ${run.links} links; ${costOf(run)}${number(run.seconds)} s`;
    const pick = element("select", {"aria-label": "agent", change: event => choose(event.target.value === "" ? null : Number(event.target.value), true)},
      element("option", {value: ""}, "choose an agent"), ...run.names.slice(0, 5000).map((name, i) => element("option", {value: i}, shortened(name, 40))));
    this.pick = pick;
    this.legend = element("div", {class: "legend"});
    const told = [element("p", {class: run.status === "diverged" ? "warning" : "quiet"}, `${run.status}${run.message ? `: ${run.message}` : ""}; ${facts}`)];
    if (!run.recorded) told.push(element("p", {class: "quiet"}, "Only the final weights are known: record_weights=True keeps them over time."));
    this.host = element("section", {class: "card run"}, element("h2", {}, run.name), ...told,
      element("p", {}, ...this.buttons, " ", pick), this.legend, element("div", {class: "pair"}, this.view, this.panel));
    this.current = run.places && run.links <= 4000 ? "network" : "matrix";
    this.show(this.current, true);
  }

  show(name, first) {
    this.current = name;
    this.view.replaceChildren(this.views[name].host);
    this.buttons.forEach(button => button.setAttribute("aria-pressed", button.textContent === name));
    if (!first) refresh();
  }

  draw() {
    const run = this.run, frame = upTo(run.frames, state.k);
    const fixed = state.fixed !== null && state.fixed < run.agents, agent = fixed ? state.fixed : state.agent;
    const shown = agent !== null && agent < run.agents ? agent : null;
    this.views[this.current].draw(frame, {agent: shown, paint: PAINTS[state.paint]});
    this.pick.value = fixed ? String(state.fixed) : "";
    const hint = "Point at an agent to see its weights, data and curve; click to fix it.";
    this.panel.replaceChildren(...(shown === null ? [element("p", {class: "quiet"}, hint)] : describeAgent(run, frame, shown, fixed)));
    this.legend.replaceChildren(...legendOf(run, this.current));
  }
}

function legendOf(run, view) {
  const key = (style, text, kind) => element("span", {}, element("span", {class: `key ${kind}`, style}), text);
  const found = [key("background:var(--rose)", "weight rose since the start", ""), key("background:var(--fell)", "fell", ""),
    key("background:var(--same)", "as it was", "")];
  if (view === "matrix") {
    const shade = state.width === "bytes" && run.sent ? "bytes carried by now" : "weight";
    return [...found, element("span", {}, `row: who listens; column: to whom; shade: ${shade}; neighbours are near each other`)];
  }
  const width = state.width === "bytes" && run.sent ? `bytes carried by now, up to ${bytes(run.most)}` : `weight, up to ${number(run.largest)}`;
  found.push(element("span", {}, `width: ${width}; size: Perron weight`));
  if (state.paint === "label mix" && run.classes) {
    return [...found, ...[...run.classes.row(0)].map((_, c) => key(`background:${CLASSES[c % CLASSES.length]}`, `class ${c}`, "dot"))];
  }
  const down = state.paint.startsWith("loss"), ends = down ? ["most", "least"] : ["least", "most"];
  const stops = [0, 0.25, 0.5, 0.75, 1].map(share => ramp(share)).join(",");
  return [...found, element("span", {}, `${state.paint}: ${ends[0]} `, element("span", {class: "key ramp",
    style: `background:linear-gradient(90deg,${stops})`}), ends[1])];
}

function refresh() {
  slider.value = upTo(TIMES, state.k);
  reading.textContent = `iteration ${state.k}`;
  views.forEach(view => view.draw());
  charts.forEach(chart => chart.move(state.k));
}

function go(position) {
  state.k = TIMES[Math.min(TIMES.length - 1, Math.max(0, position))];
  refresh();
}

function play(on) {
  clearInterval(state.timer);
  state.timer = null;
  if (on) {
    if (Number(slider.value) >= TIMES.length - 1) go(0);
    state.timer = setInterval(() => {
      go(Number(slider.value) + 1);
      if (Number(slider.value) >= TIMES.length - 1) play(false);
    }, Math.max(50, Math.min(400, 12000 / TIMES.length)));
  }
  playing.textContent = on ? "❚❚" : "▶";
  playing.setAttribute("aria-label", on ? "pause" : "play");
}

const slider = element("input", {type: "range", id: "time", min: 0, max: TIMES.length - 1, step: 1, value: 0, "aria-label": "iteration",
  input: event => { play(false); go(Number(event.target.value)); }});
const reading = element("output", {id: "reading", for: "time"});
const playing = element("button", {type: "button", id: "play", click: () => play(state.timer === null)}, "▶");
const step = by => { play(false); go(Number(slider.value) + by); };
const painting = element("select", {id: "paint", change: event => { state.paint = event.target.value; refresh(); }},
  ...Object.keys(PAINTS).map(name => element("option", {value: name}, name)));
const widths = element("select", {id: "width", change: event => { state.width = event.target.value; refresh(); }},
  element("option", {value: "weight"}, "weight"), element("option", {value: "bytes"}, "bytes carried"));
const names = [...new Set(RUNS.flatMap(run => Object.keys(run.metrics)))];
const charts = names.map(name => new Chart(name, RUNS.map((run, i) => [run, i]).filter(([run]) => Object.hasOwn(run.metrics, name)).map(([run, i]) => ({
  x: run.iterations, y: run.metrics[name], colour: colour(i), dash: DASHES[i % DASHES.length], name: run.name,
})), {label: "iteration", forceLinear: /^(accuracy|n_min_pi|bytes$|gradients$)/.test(name), onMove: k => { play(false); go(upTo(TIMES, k)); }}));
const views = RUNS.map(run => new RunView(run));

function settingsTable() {
  const keys = [...new Set(RUNS.flatMap(run => run.settings.map(([key]) => key)))], held = RUNS.map(run => Object.fromEntries(run.settings));
  const rows = keys.map(key => {
    const values = held.map(settings => (Object.hasOwn(settings, key) ? settings[key] : "–"));
    return element("tr", {class: new Set(values).size > 1 ? "differs" : null}, element("th", {scope: "row"}, key), ...values.map(value => element("td", {}, value)));
  });
  const head = element("tr", {}, element("td"), ...RUNS.map(run => element("th", {scope: "col"}, run.name)));
  return element("details", {}, element("summary", {}, "Settings and versions"), element("div", {class: "table"},
    element("table", {id: "settings"}, element("thead", {}, head), element("tbody", {}, ...rows))));
}

const choices = [
  ...(RUNS.some(run => run.places) ? [element("label", {class: "quiet"}, "colour of agents ", painting)] : []),
  ...(RUNS.some(run => run.sent) ? [element("label", {class: "quiet"}, "links show ", widths)] : []),
];
const narrow = innerWidth < 700;
page.replaceChildren(
  element("h1", {}, document.title),
  element("div", {class: "bar"}, playing, element("button", {type: "button", id: "back", "aria-label": "one record back", click: () => step(-1)}, "◀︎|"), slider,
    element("button", {type: "button", id: "forward", "aria-label": "one record forward", click: () => step(1)}, "|▶︎"), reading,
    ...(narrow ? [] : choices)),
  ...(narrow ? [element("div", {class: "bar loose"}, ...choices)] : []), // of a phone, the bar that stays takes little
  element("div", {class: RUNS.length === 1 ? "runs alone" : "runs"}, ...views.map(view => view.host)),
  element("div", {class: "charts"}, ...charts.map(chart => chart.host)),
  settingsTable(),
);
document.addEventListener("keydown", event => {
  if (/^(INPUT|SELECT|BUTTON)$/.test(event.target.tagName)) return;
  if (event.key === " ") { event.preventDefault(); play(state.timer === null); }
  if (event.key === "ArrowRight") step(1);
  if (event.key === "ArrowLeft") step(-1);
  if (event.key === "Escape") { state.fixed = null; choose(null, false); }
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", refresh);
play(false);
go(TIMES.length - 1);

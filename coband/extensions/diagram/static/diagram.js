/* The space-time diagram: a lane per node, simulated time to the right, a line per copy of a message.

   Everything drawn is a shape between two events: a message from its send to its arrival or loss, and on a lane a turn,
   a wait, a downtime or, at one event, a mark. The columns of a job are those of packing.py. */

const SERVER = -1, EVERYONE = -2, LEFT = 70, RIGHT = 8, MOST = 1000, REACH = 10, LISTED = 40;
const TYPES = { i1: Int8Array, i2: Int16Array, i4: Int32Array, f4: Float32Array, f8: Float64Array };
const LAYERS = ["turn", "wait", "down", "message", "lost", "mark"];
const ENDINGS = { message: "m-3 0h6", lost: "m-4-4l8 8m0-8l-8 8" }; // a bar at the receiver, a cross
const ENDS = { resume: "wait", up: "down" }, ARRIVALS = ["deliver", "duplicate", "drop"];
const UNMARKED = ["turn", "choose", "reward", "send", ...ARRIVALS];
const NOTHING = { time: null, message: -1, scalars: 0, hop: 0, round: -1, version: -1, value: null };

const root = document.getElementById("diagram"), find = (selector) => root.querySelector(selector);
const choice = find("select"), plot = find(".plot"), sources = root.querySelectorAll("script");
let job, shapes, lanes, lane, end, view, width, drawn, dragged, chain = [];

const word = (event) => job.words[job.event[event]] ?? "";
const causeOf = (event) => job.cause[event] ? event - job.cause[event] : -1;
const name = (node) => node === SERVER ? "server" : node === EVERYONE ? "everyone" : node < 0 ? "" : `agent ${node}`;
const short = (value) => Number(value.toPrecision(6)).toString();
const isCopy = (shape) => shape.what === "message" || shape.what === "lost";

async function decode([type, text]) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new TYPES[type](await new Response(stream).arrayBuffer());
}

/* A duplicate noted at its sender has been suppressed by the transport. A downtime or its end can be noted later than
   it happens; the value of the event is how much later. */
function allShapes() {
  const found = [], open = new Map();
  const add = (what, from, to) => found.push({ what, from, to, t0: job.time[from], t1: job.time[to] });
  for (let i = 0; i < job.count; i++) {
    const what = word(i), node = job.node[i], cause = causeOf(i), led = word(cause), key = (ENDS[what] ?? what) + node;
    const time = what === "down" || what === "up" ? job.time[i] - job.value[i] : job.time[i];
    if (led === "send" && ARRIVALS.includes(what) && !(what === "duplicate" && node === job.node[cause])) {
      add(what === "drop" ? "lost" : "message", cause, i);
    } else if (led === "turn" && what === "choose") {
      add("turn", cause, i);
    } else if (what === "wait" || what === "down") {
      if (!open.has(key)) open.set(key, { what, from: i, to: i, t0: time, t1: Infinity });
    } else if (what in ENDS) {
      if (open.has(key)) found.push({ ...open.get(key), to: i, t1: time });
      open.delete(key);
    } else if (!UNMARKED.includes(what)) {
      add("mark", i, i);
    }
  }
  found.push(...open.values());
  return LAYERS.flatMap((what) => found.filter((shape) => shape.what === what));
}

async function load() {
  const option = choice.selectedOptions[0], read = JSON.parse(sources[option.value].textContent);
  for (const [name, column] of Object.entries(read.columns)) read[name] = await decode(column);
  if (option !== choice.selectedOptions[0]) return; // another job was chosen meanwhile
  let ticks = 0;
  job = { ...read, time: Float64Array.from(read.time, (step) => (ticks += step) * read.tick) };
  shapes = allShapes();
  const nodes = [...new Set([...new Set(job.node), ...new Set(job.peer)])].filter((node) => node >= SERVER);
  lanes = new Map(nodes.sort((a, b) => a - b).map((node, place) => [node, place]));
  lane = Math.min(26, Math.max(14, 480 / lanes.size));
  end = job.time[job.count - 1] || 1;
  const copies = shapes.filter(isCopy);
  view = [0, copies[Math.floor(plot.clientWidth / 4)]?.t1 || end];
  find(".kinds").replaceChildren(...[...new Set(copies.map((shape) => job.kind[shape.from]))].map((code) => {
    const swatch = make("span");
    swatch.style.background = job.colours[code];
    return make("li", swatch, ` ${job.names[code]}`);
  }));
  choose(-1);
  root.dataset.ready = option.text;
}

const x = (time) => LEFT + (time - view[0]) / (view[1] - view[0]) * (width - LEFT - RIGHT);
const timeAt = (pixel) => view[0] + (pixel - LEFT) / (width - LEFT - RIGHT) * (view[1] - view[0]);
const y = (node) => (lanes.get(node) + 0.5) * lane;
const isInView = ([t0, , t1]) => t1 >= view[0] && t0 <= view[1];
const path = ([x0, y0, x1, y1]) => `M${x0.toFixed()} ${y0.toFixed(1)}L${x1.toFixed()} ${y1.toFixed(1)}`;

/* The lines of a shape, each from a time and a height to a time and a height. A lost copy ends next to the receiver's
   lane. The trace does not name the receivers of copies to several neighbours: their sender has a small fork. */
function linesOf({ what, from, to, t0, t1 }) {
  const node = job.node[from], other = what === "lost" ? job.peer[to] : job.node[to];
  const level = y(node), side = 0.4 * lane;
  if (!lanes.has(node) || (!lanes.has(other) && other !== EVERYONE)) return [];
  if (what === "lost" && other !== EVERYONE) return [[t0, level, t1, y(other) + (y(other) < level ? side : -side)]];
  if (other !== EVERYONE) return [[t0, level, t1, y(other)]];
  const agents = [...lanes.keys()].filter((one) => one !== node && one !== SERVER);
  const levels = job.value[to] < agents.length ? [level - side, level + side] : agents.map(y);
  return levels.map((one) => [t0, level, t1, one]);
}

/* The part of a line in view, in pixels; on a lane it can be seen however short it is. */
function visiblePart([t0, y0, t1, y1]) {
  const from = Math.max(t0, view[0]), to = Math.min(t1, view[1]), slope = t1 > t0 ? (y1 - y0) / (t1 - t0) : 0;
  return [x(from), y0 + slope * (from - t0), x(to) + (y0 === y1 ? 1 : 0), slope ? y1 - slope * (t1 - to) : y1];
}

/* A path for each layer and colour, without lines that look the same; of very many copies an even part. */
function drawShapes(visible, copies) {
  const paths = new Map(), opacity = Math.min(0.85, Math.max(0.4, 400 / copies));
  for (const shape of visible) {
    if (isCopy(shape) && Math.imul(shape.to, 2654435761) >>> 0 > 2 ** 32 * MOST / copies) continue;
    const colour = isCopy(shape) ? `style="stroke: ${job.colours[job.kind[shape.from]]}; opacity: ${opacity}"` : "";
    const key = `class="${shape.what}" ${colour}`, end = shape.t1 <= view[1] ? ENDINGS[shape.what] ?? "" : "";
    if (!paths.has(key)) paths.set(key, new Set());
    for (const points of linesOf(shape).map(visiblePart)) {
      if (!paths.get(key).has(path(points) + end)) drawn.push({ event: shape.to, points });
      paths.get(key).add(path(points) + end);
    }
  }
  return [...paths].map(([key, lines]) => `<path ${key} d="${[...lines].join("")}"/>`).join("");
}

function drawChain() {
  const nodeOf = (event) => lanes.has(job.node[event]) ? job.node[event] : job.peer[event];
  const placed = chain.filter((event) => lanes.has(nodeOf(event)));
  const spots = placed.map((event) => [job.time[event], y(nodeOf(event))]);
  const lines = (starts) => starts.map((start, i) => [...start, ...spots[i]]).filter(isInView).map(visiblePart);
  return `<path class="chain" d="${lines(spots.slice(1)).map(path).join("")}"/>` +
    `<path class="chosen" d="${lines(spots.slice(0, 1)).map(path).join("")}"/>`;
}

function drawAxis() {
  const least = (view[1] - view[0]) * 110 / width, power = 10 ** Math.floor(Math.log10(least)), marks = [];
  const step = [1, 2, 5, 10].find((factor) => factor * power >= least) * power;
  for (let i = Math.ceil(view[0] / step); i * step <= view[1]; i++)
    marks.push(`<path d="M${x(i * step)} 0v5"/><text x="${x(i * step)}" y="18">${short(i * step)}</text>`);
  find(".axis").innerHTML = marks.join("");
}

function draw() {
  plot.style.height = `${lanes.size * lane}px`;
  width = plot.clientWidth;
  drawn = [];
  const visible = shapes.filter(({ t0, t1 }) => isInView([t0, 0, t1])), copies = visible.filter(isCopy).length;
  const rows = [...lanes.keys()].map((node) => `<path d="M${LEFT} ${y(node)}H${width - RIGHT}"/>` +
    `<text x="${LEFT - 8}" y="${y(node)}" dy="0.35em">${name(node)}</text>`);
  plot.innerHTML = rows.join("") + drawShapes(visible, copies) + drawChain();
  drawAxis();
  find(".status").textContent = `Simulated time ${short(view[0])} to ${short(view[1])} of ${short(end)}: ` +
    `${copies} copies of messages, arrived or lost.` +
    (copies > MOST ? ` About ${MOST} of them are drawn; zoom in for more.` : "") +
    (job.total > job.count ? ` The page holds the first ${job.count} of ${job.total} events.` : "");
}

function make(tag, ...children) {
  const element = document.createElement(tag);
  element.append(...children);
  return element;
}

function sentence(event) {
  const peer = name(job.peer[event]), toward = ["deliver", "duplicate"].includes(word(event)) ? "from" : "to";
  const ends = `${word(event)} at ${name(job.node[event])}${peer && ` ${toward} ${peer}`}`;
  return job.kind[event] < 0 ? ends : `${ends} (${job.names[job.kind[event]]})`;
}

function describe(event) {
  if (event < 0) return find(".details").replaceChildren(make("p", "Choose an event: its causes appear here."));
  const known = Object.keys(NOTHING).filter((fact) => job[fact][event] !== NOTHING[fact]);
  const facts = known.map((fact) => `${fact} ${short(job[fact][event])}`);
  const causes = chain.slice(1, LISTED + 1).map((cause) => {
    const button = make("button", `${cause}: ${sentence(cause)}, time ${short(job.time[cause])}`);
    button.addEventListener("click", () => choose(cause));
    return make("li", button);
  });
  find(".details").replaceChildren(
    make("h3", `Event ${event}: ${sentence(event)}`),
    make("p", facts.concat(job.names[job.reason[event]] ?? []).join(" · ")),
    make("p", causes.length ? "Because of" : "It was due by the schedule."), make("ol", ...causes),
    make("p", make("code", `coband trace why RUN ${event} ${job.options}`), " says what the numbers mean."),
  );
}

function choose(event) {
  const time = job.time[event], half = (view[1] - view[0]) / 2;
  chain = [];
  for (let one = event; one >= 0; one = causeOf(one)) chain.push(one);
  if (time < view[0] || time > view[1]) show(time - half, time + half); else draw();
  describe(event);
}

function show(from, to) {
  const span = Math.min(Math.max(to - from, end * 1e-9), end), start = Math.min(Math.max(from, 0), end - span);
  view = [start, start + span];
  draw();
}

function zoom(factor, around = job.time[chain[0]]) {
  const fixed = around >= view[0] && around <= view[1] ? around : (view[0] + view[1]) / 2; // else the middle
  show(fixed - (fixed - view[0]) * factor, fixed + (view[1] - fixed) * factor);
}

function nearest(px, py) {
  const far = drawn.map(({ points: [x0, y0, x1, y1] }) => {
    const dx = x1 - x0, dy = y1 - y0, along = ((px - x0) * dx + (py - y0) * dy) / (dx * dx + dy * dy || 1);
    const share = Math.min(1, Math.max(0, along));
    return Math.hypot(px - x0 - share * dx, py - y0 - share * dy);
  });
  return drawn[far.lastIndexOf(far.reduce((a, b) => Math.min(a, b), REACH))]?.event ?? -1;
}

const pan = (share) => show(view[0] + share * (view[1] - view[0]), view[1] + share * (view[1] - view[0]));
const KEYS = {
  "+": () => zoom(0.5), "-": () => zoom(2), Home: () => show(0, end), Escape: () => choose(-1),
  ArrowLeft: () => pan(-0.25), ArrowRight: () => pan(0.25),
  ArrowUp: () => choose(Math.max(0, (chain[0] ?? 1) - 1)),
  ArrowDown: () => choose(Math.min(job.count - 1, (chain[0] ?? -1) + 1)),
};
root.querySelectorAll("[data-key]").forEach((one) => one.addEventListener("click", () => KEYS[one.dataset.key]()));
plot.addEventListener("keydown", (event) => {
  if (!(event.key in KEYS) || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  KEYS[event.key]();
});
plot.addEventListener("wheel", (event) => {
  if (document.activeElement !== plot && !event.ctrlKey) return; // the page scrolls until the diagram has been clicked
  event.preventDefault();
  zoom(event.deltaY > 0 ? 1.25 : 0.8, timeAt(event.offsetX));
}, { passive: false });
plot.addEventListener("pointerdown", (event) => { dragged = { at: event.offsetX, far: 0 }; });
plot.addEventListener("pointermove", (event) => {
  if (!event.buttons || !dragged) return;
  const shift = dragged.at - event.offsetX;
  dragged = { at: event.offsetX, far: dragged.far + Math.abs(shift) };
  pan(shift / (width - LEFT - RIGHT));
});
plot.addEventListener("pointerup", (event) => dragged?.far < 4 && choose(nearest(event.offsetX, event.offsetY)));
choice.addEventListener("change", load);
new ResizeObserver(() => job && plot.clientWidth !== width && draw()).observe(plot);
if (sources.length) load();

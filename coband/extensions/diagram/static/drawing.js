/* The picture: rows, spans, marks, the chain of causes, axes. */
// --- drawing

function readColours() {
  const style = getComputedStyle(root), get = (name) => style.getPropertyValue(name).trim();
  colours = { ink: get("--ink"), muted: get("--muted"), rule: get("--rule"), paper: get("--paper"), accent: get("--accent"),
    turn: get("--time-compute"), wait: get("--time-others"), down: get("--time-down") };
  colours.kinds = Array.from({ length: 8 }, (_, i) => get(`--kind-${i}`));
  colours.plain = get("--no-payload");
}
const kindColour = (kind) => job.colours[kind] < 0 ? colours.plain : colours.kinds[job.colours[kind]];
const kindDash = (kind) => Math.max(0, job.kinds.indexOf(kind)) % DASHES.length;

function redraw() {
  if (!waiting) waiting = requestAnimationFrame(() => { waiting = 0; draw(); });
}

function draw() {
  if (!job) return;
  const ratio = window.devicePixelRatio || 1, box = canvas.getBoundingClientRect();
  size = { width: box.width, height: box.height };
  const width = Math.round(box.width * ratio), tall = Math.round(box.height * ratio);
  if (canvas.width !== width || canvas.height !== tall) { canvas.width = width; canvas.height = tall; }
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, size.width, size.height);
  drawRows();
  pen.save();
  pen.beginPath();
  pen.rect(LEFT - 1, 0, size.width - LEFT - 6, size.height - BOTTOM + 4);
  pen.clip();
  const found = [...inView()], crowded = isCrowd(found);
  drawSpans(crowded);
  if (crowded) drawShades(found); else drawLines(found);
  drawStrip(found);
  if (!crowded) drawMarks(); else job.marksShown = [];
  drawUnknown();
  drawChain();
  pen.restore();
  drawAxis();
  canvas.dataset.messages = found.length;
  canvas.dataset.detail = crowded ? "shades" : "lines";
  canvas.dataset.view = view.join(" ");
  canvas.dataset.known = job.known;
  const cut = job.total > job.count ? ` The page holds the first ${number(job.count)} of ${number(job.total)} events.` : "";
  const how = crowded ? " Shades show how many each node sends and receives; zoom in for lines." : "";
  const late = view[1] > job.over && job.over > 0
    ? ` The last turn or first arrival is at time ${short(job.over)}, the run's simulated time; later copies are lost, repeated or doubled.` : "";
  const strange = job.strange.length ? ` No nodes of this run: ${job.strange.join(", ")}.` : "";
  const copies = `${number(found.length)} copies of messages, arrived or lost,`;
  status.textContent = `${copies} from time ${short(view[0])} to ${short(view[1])}.${late}${strange}${how}${cut}`;
  if (find("#diagram-table").open) fillTable();
}

function short(value) {
  const rounded = Number(value.toPrecision(5)), size = Math.abs(rounded);
  return size >= 1e3 && size < 1e15 ? rounded.toLocaleString("en") : rounded.toString();
}

function drawRows() {
  const every = Math.max(1, Math.ceil(13 / height()));
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  pen.lineWidth = 1;
  rows.forEach((node, row) => {
    pen.strokeStyle = colours.rule;
    pen.beginPath();
    pen.moveTo(LEFT, y(node));
    pen.lineTo(size.width - 8, y(node));
    pen.stroke();
    pen.fillStyle = colours.ink;
    if (node === SERVER || row % every === 0) pen.fillText(nodeName(node), LEFT - 8, y(node));
  });
}

function drawSpans(crowded) {
  const thick = Math.min(9, Math.max(2, height() * (crowded ? 0.34 : 0.5))), lower = crowded ? height() * 0.3 : 0;
  for (const what of ["turn", "wait", "down"]) {
    pen.fillStyle = colours[what];
    pen.globalAlpha = what === "down" ? 0.9 : 0.4;
    const depth = what === "wait" ? thick * 0.5 : thick;
    for (const span of job.spans) {
      if (span.what !== what || !rowOf.has(span.node)) continue;
      const from = job.time[span.from], to = span.to < 0 ? job.end : job.time[span.to];
      if (to < view[0] || from > view[1]) continue;
      const left = x(Math.max(from, view[0]));
      pen.fillRect(left, y(span.node) + lower - depth / 2, Math.max(x(Math.min(to, view[1])) - left, 0.5), depth);
    }
  }
  pen.globalAlpha = 1;
}

/* Whether lines would cover each other: they are too many, or begin in too few columns of pixels. */
function isCrowd(found) {
  if (found.length > CROWD) return true;
  const sends = new Set(), places = new Set();
  for (const m of found) { sends.add(job.starts[m]); places.add(column(job.sent[m])); }
  return sends.size > FEW && sends.size > DENSE * places.size;
}

const markShown = (i) => job.time[i] >= view[0] && job.time[i] <= view[1] && rowOf.has(job.node[i]);

function drawMarks() {
  const shown = job.marks.filter(markShown);
  job.marksShown = shown.length <= MARKS ? shown : [];
  pen.fillStyle = colours.ink;
  const radius = Math.min(4, Math.max(1.5, height() * 0.22));
  for (const i of job.marksShown) {
    const at = x(job.time[i]), level = y(job.node[i]);
    pen.beginPath();
    if (job.words[job.event[i]] === "trigger") {
      pen.moveTo(at, level - radius - 1); pen.lineTo(at + radius, level + radius); pen.lineTo(at - radius, level + radius);
    } else pen.arc(at, level, radius * 0.75, 0, 7);
    pen.fill();
  }
}

function drawChain() {
  if (selected < 0) return;
  pen.strokeStyle = pen.fillStyle = colours.accent;
  pen.lineWidth = 3;
  pen.lineJoin = "round";
  pen.beginPath();
  chain.forEach((event, i) => {
    const cause = chain[i + 1];
    if (cause === undefined) return;
    const from = rowOf.has(job.node[cause]) ? job.node[cause] : job.node[event];
    const to = rowOf.has(job.node[event]) ? job.node[event] : from;
    const lost = job.event[event] === job.drop;
    if (!rowOf.has(from)) return;
    pen.moveTo(x(job.time[cause]), y(from));
    pen.lineTo(x(job.time[event]), y(lost ? from : to));
  });
  pen.stroke();
  const node = rowOf.has(job.node[selected]) ? job.node[selected] : job.peer[selected];
  if (!rowOf.has(node)) return;
  pen.beginPath();
  pen.arc(x(job.time[selected]), y(node), 6, 0, 7);
  pen.fill();
  pen.lineWidth = 1.5;
  pen.strokeStyle = colours.paper;
  pen.stroke();
}

function drawAxis() {
  if (job.most) {
    pen.fillStyle = colours.muted;
    pen.textAlign = "right";
    pen.textBaseline = "top";
    pen.fillText(`≤ ${number(job.most)}`, LEFT - 8, 6);
    pen.textBaseline = "bottom";
    pen.fillText("sent", LEFT - 8, TOP - 4);
  }
  const span = view[1] - view[0], rough = span / Math.max(2, (size.width - LEFT) / 110);
  const power = 10 ** Math.floor(Math.log10(rough)), step = [1, 2, 5, 10].find((n) => n * power >= rough) * power;
  const base = size.height - BOTTOM + 4;
  pen.strokeStyle = colours.muted;
  pen.fillStyle = colours.ink;
  pen.textAlign = "center";
  pen.textBaseline = "top";
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(LEFT, base);
  pen.lineTo(size.width - 8, base);
  for (let k = Math.ceil(view[0] / step); k * step <= view[1]; k++) {
    const at = x(k * step);
    pen.moveTo(at, base);
    pen.lineTo(at, base + 4);
    pen.fillText(Number((k * step).toPrecision(12)).toString(), at, base + 6);
  }
  pen.stroke();
  pen.fillStyle = colours.muted;
  pen.textAlign = "right";
  pen.fillText("simulated time", size.width - 8, base + 19);
}

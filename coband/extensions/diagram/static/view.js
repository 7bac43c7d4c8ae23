/* Which nodes, messages and times are shown, and the chosen event. */
// --- what is shown

/* The nodes that a text names, and the parts of it that name none of this run. */
function chosenNodes(text) {
  const wanted = new Set(), strange = [];
  for (const part of text.toLowerCase().split(/[\s,;]+/)) {
    const range = part.match(/^(\d+)(?:-(\d+))?$/);
    const named = job.nodes.filter((node) => node === SERVER ? part === "server" :
      range && node >= +range[1] && node <= +(range[2] || range[1]));
    named.forEach((node) => wanted.add(node));
    if (part && !named.length && !/^agents?$/.test(part)) strange.push(part);
  }
  return [wanted, strange];
}

function chooseRows() {
  const [wanted, strange] = chosenNodes(find("#diagram-nodes").value);
  job.strange = strange;
  job.wanted = wanted.size ? wanted : null;
  let shown = job.nodes;
  if (wanted.size) {
    const partners = new Set(wanted);
    for (let m = 0; m < job.starts.length; m++) {
      const from = job.from[m], to = job.to[m];
      if (wanted.has(from) && to >= SERVER) partners.add(to);
      if (wanted.has(to) && from >= SERVER) partners.add(from);
    }
    shown = job.nodes.filter((node) => partners.has(node));
  }
  rows = shown;
  rowOf = new Map(rows.map((node, row) => [node, row]));
  canvas.style.height = `${Math.min(Math.max(rows.length * 22 + TOP + BOTTOM, 260), 700)}px`;
  chooseMessages();
}

/* Which messages the filters let through. */
function chooseMessages() {
  const row = (node) => rowOf.has(node);
  job.visible = new Uint8Array(job.starts.length);
  for (let m = 0; m < job.starts.length; m++) {
    const from = job.from[m], to = job.to[m];
    job.visible[m] = !hidden.has(job.kindOf[m]) && (!job.wanted || job.wanted.has(from) || job.wanted.has(to)) &&
      (row(from) || row(to)) && (to === EVERYONE || (row(from) && row(to))) ? 1 : 0;
  }
  redraw();
}

/* The messages in view; copies are in order of arrival, and none takes longer than the slowest. */
function* inView() {
  let low = 0, high = job.arrived.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (job.arrived[middle] < view[0]) low = middle + 1; else high = middle;
  }
  for (let m = low; m < job.arrived.length && job.arrived[m] <= view[1] + job.slowest; m++)
    if (job.visible[m] && job.sent[m] <= view[1]) yield m;
}
const x = (time) => LEFT + (time - view[0]) / (view[1] - view[0]) * (size.width - LEFT - 8);
const timeAt = (pixel) => view[0] + (pixel - LEFT) / (size.width - LEFT - 8) * (view[1] - view[0]);
const height = () => (size.height - TOP - BOTTOM) / Math.max(rows.length, 1);
const y = (node) => TOP + ((rowOf.has(node) ? rowOf.get(node) : 0) + 0.5) * height();

// --- moving

function show(from, to) {
  const least = job.end * 1e-9, span = Math.min(Math.max(to - from, least), job.end);
  const start = Math.min(Math.max(from, 0), job.end - span);
  view = [start, start + span];
  redraw();
}
/* Zooming keeps the chosen event where it is, if it is in view, else the middle. */
function centre() {
  const time = selected < 0 ? -1 : job.time[selected];
  return time >= view[0] && time <= view[1] ? time : (view[0] + view[1]) / 2;
}
const zoom = (factor, around = centre()) =>
  show(around - (around - view[0]) * factor, around + (view[1] - around) * factor);
const pan = (share) => show(view[0] + share * (view[1] - view[0]), view[1] + share * (view[1] - view[0]));
const reset = () => show(0, job.end);

// --- choosing

function nearest(px, py) {
  let best = -1, least = REACH;
  const consider = (event, distance) => { if (distance < least) { least = distance; best = event; } };
  for (const i of job.marksShown || []) consider(i, Math.hypot(px - x(job.time[i]), py - y(job.node[i])) - 3);
  for (const m of inView()) {
    const from = job.from[m], to = job.to[m], x0 = x(job.sent[m]), x1 = x(job.arrived[m]);
    const y0 = y(rowOf.has(from) ? from : to), y1 = rowOf.has(to) ? y(to) : y0;
    consider(job.ends[m], fromSegment(px, py, x0, y0, job.lost[m] ? x0 + 6 : x1, job.lost[m] ? (y0 + y1) / 2 : y1));
  }
  for (const span of job.spans) {
    if (!rowOf.has(span.node)) continue;
    const end = span.to < 0 ? job.end : job.time[span.to], level = y(span.node);
    if (job.time[span.from] <= view[1] && end >= view[0])
      consider(span.to < 0 ? span.from : span.to, fromSegment(px, py, x(job.time[span.from]), level, x(end), level) + 2);
  }
  return best;
}

function fromSegment(px, py, x0, y0, x1, y1) {
  const dx = x1 - x0, dy = y1 - y0, length = dx * dx + dy * dy;
  const share = length ? Math.min(1, Math.max(0, ((px - x0) * dx + (py - y0) * dy) / length)) : 0;
  return Math.hypot(px - x0 - share * dx, py - y0 - share * dy);
}

function select(event) {
  selected = event;
  chain = [];
  for (let e = event; e >= 0; e = causeOf(e)) chain.push(e);
  describe();
  redraw();
}

function bringIntoView(event) {
  const time = job.time[event], span = view[1] - view[0];
  if (time < view[0] || time > view[1]) show(time - span / 2, time + span / 2);
}

/* The next or previous message in view, by the time of its arrival; the ends are in order of time. */
function step(way) {
  const shown = Array.from(inView(), (m) => job.ends[m]);
  if (!shown.length) return;
  const next = way > 0 ? shown.find((e) => e > selected) : shown.filter((e) => selected < 0 || e < selected).pop();
  if (next !== undefined) select(next);
}

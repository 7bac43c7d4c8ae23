/* Messages in the picture: lines and fans, or shades and bars. */
const column = (time) => Math.floor(x(time) - LEFT);
const columnCount = () => Math.max(1, Math.ceil(size.width - LEFT - 8));

/* In a crowd: the darker a lane in a column of pixels, the more messages its node sends and receives there. */
function drawShades(found) {
  const width = columnCount(), counts = new Float64Array(rows.length * width);
  let most = 1;
  const count = (node, time, weight) => {
    const row = rowOf.get(node), at = column(time);
    if (row === undefined || at < 0 || at >= width) return;
    most = Math.max(most, counts[row * width + at] += weight);
  };
  for (const m of found) {
    count(job.from[m], job.sent[m], job.weight[m]);
    if (job.to[m] === EVERYONE) for (const node of reaches(m) ? rows : []) { if (node !== job.from[m]) count(node, job.arrived[m], 1); }
    else if (!job.lost[m]) count(job.to[m], job.arrived[m], 1);
  }
  const tall = Math.max(1.5, height() * 0.55);
  pen.fillStyle = colours.ink;
  for (let row = 0; row < rows.length; row++) {
    const top = y(rows[row]) - tall * 0.8;
    for (let at = 0; at < width; at++) {
      const number = counts[row * width + at];
      if (!number) continue;
      pen.globalAlpha = 0.12 + 0.75 * Math.log1p(number) / Math.log1p(most);
      pen.fillRect(LEFT + at, top, 1, tall);
    }
  }
  pen.globalAlpha = 1;
}

/* Above the lanes: how many messages are sent in each column of pixels, by kind. */
function drawStrip(found) {
  const width = columnCount(), total = new Float64Array(width), byKind = new Map();
  for (const m of found) {
    const at = column(job.sent[m]);
    if (at < 0 || at >= width) continue;
    const kind = job.kindOf[m];
    if (!byKind.has(kind)) byKind.set(kind, new Float64Array(width));
    byKind.get(kind)[at] += job.weight[m];
    total[at] += job.weight[m];
  }
  const most = total.reduce((a, b) => Math.max(a, b), 0), base = TOP - 6, tall = STRIP - 8, done = new Float64Array(width);
  for (const kind of job.kinds) {
    if (!byKind.has(kind)) continue;
    pen.fillStyle = kindColour(kind);
    byKind.get(kind).forEach((number, at) => {
      const high = number / most * tall;
      if (high) pen.fillRect(LEFT + at, base - done[at] - high, 1, high);
      done[at] += high;
    });
  }
  job.most = most;
}

/* The part of the run whose events are not in the page. */
function drawUnknown() {
  if (job.total <= job.count || view[1] <= job.known) return;
  const left = Math.max(LEFT, x(job.known)), right = size.width - 8, bottom = size.height - BOTTOM;
  pen.strokeStyle = colours.rule;
  pen.lineWidth = 1;
  pen.save();
  pen.beginPath();
  pen.rect(left, TOP - 2, right - left, bottom - TOP + 2);
  pen.fillStyle = colours.paper;
  pen.fill();
  pen.clip();
  pen.beginPath();
  for (let at = left - bottom; at < right; at += 8) { pen.moveTo(at, bottom); pen.lineTo(at + bottom, 0); }
  pen.stroke();
  pen.fillStyle = colours.ink;
  pen.textAlign = "left";
  pen.textBaseline = "top";
  const text = `After time ${short(job.known)}: not in this page`;
  const wide = pen.measureText(text).width;
  pen.clearRect(left + 4, TOP + 4, wide + 12, 20);
  pen.fillText(text, left + 10, TOP + 8);
  pen.restore();
}

/* One line per copy; the copies of a broadcast are a fan. */
function drawLines(found) {
  const sends = new Map();
  for (const m of found) {
    if (!sends.has(job.starts[m])) sends.set(job.starts[m], []);
    sends.get(job.starts[m]).push(m);
  }
  const isFan = (copies) => copies.length >= FAN || job.to[copies[0]] === EVERYONE;
  const fans = [...sends.values()].filter(isFan).length, faint = Math.min(0.5, Math.max(0.07, 200 / found.length));
  pen.lineWidth = found.length > 500 ? 0.8 : 1.2;
  for (const copies of sends.values()) {
    const kind = job.kindOf[copies[0]], fan = isFan(copies);
    pen.strokeStyle = pen.fillStyle = kindColour(kind);
    pen.setLineDash(DASHES[kindDash(kind)]);
    if (fan && fans <= HULLS) drawHull(copies);
    pen.globalAlpha = fan ? faint : 0.85;
    pen.beginPath();
    for (const m of copies) line(m, fan);
    pen.stroke();
    pen.setLineDash([]);
    pen.globalAlpha = 1;
    if (!fan || !rowOf.has(job.from[copies[0]])) continue;
    pen.beginPath();
    pen.arc(x(job.sent[copies[0]]), y(job.from[copies[0]]), 2.5, 0, 7);
    pen.fill();
  }
}

function drawHull(copies) {
  if (!rowOf.has(job.from[copies[0]])) return;
  const points = copies.filter((m) => job.to[m] !== EVERYONE && !job.lost[m]).map((m) => [x(job.arrived[m]), y(job.to[m])]);
  points.sort((a, b) => a[1] - b[1]);
  pen.globalAlpha = 0.1;
  pen.beginPath();
  pen.moveTo(x(job.sent[copies[0]]), y(job.from[copies[0]]));
  for (const point of points) pen.lineTo(...point);
  pen.closePath();
  pen.fill();
}

function line(m, fan) {
  const from = job.from[m], to = job.to[m], x0 = x(job.sent[m]), x1 = x(job.arrived[m]);
  if (to === EVERYONE) return reaches(m) ? toEveryone(from, x0, x1) : toSome(from, x0);
  const share = job.lost[m] ? 0.5 : 1, end = job.lost[m] ? x0 + 6 : x1;
  const y1 = y(from) + (y(to) - y(from)) * share;
  pen.moveTo(x0, y(from));
  pen.lineTo(end, y1);
  if (fan && !job.lost[m] && x1 - x0 < 2) tick(x1, y1);
  if (job.lost[m]) {
    pen.moveTo(end - 4, y1 - 4); pen.lineTo(end + 4, y1 + 4);
    pen.moveTo(end - 4, y1 + 4); pen.lineTo(end + 4, y1 - 4);
  }
}

/* Whether copies that are noted together went to all other agents; otherwise the trace does not say to which. */
const reaches = (m) => job.weight[m] >= job.nodes[job.nodes.length - 1];

/* Three rays at the sender: several receivers that are not known. */
function toSome(from, x0) {
  if (!rowOf.has(from)) return;
  const level = y(from), reach = Math.min(9, height() * 0.45);
  for (const side of [-1, 0, 1]) { pen.moveTo(x0, level); pen.lineTo(x0 + reach, level + side * reach); }
}

const tick = (at, level) => { pen.moveTo(at - 3, level); pen.lineTo(at + 4, level); };

/* All copies arrive at once: a fan to every lane, or, where it takes no time, a line with a tick at every lane. */
function toEveryone(from, x0, x1) {
  for (const node of rows) {
    if (node === from) continue;
    const origin = rowOf.has(from) ? from : node;
    pen.moveTo(x0, y(origin));
    pen.lineTo(x1, y(node));
    if (x1 - x0 < 2) tick(x1, y(node));
  }
}

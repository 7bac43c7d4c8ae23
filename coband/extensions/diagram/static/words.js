/* The chosen event and the messages in view, in words. */
// --- words

const VALUES = { choose: "arm", reward: "reward", send: "receivers", deliver: "copy", drop: "copy", retransmit: "copy",
  duplicate: "copy", turn: "turn of the agent" };

function facts(i) {
  const word = job.words[job.event[i]], list = [["simulated time", number(job.time[i])], ["at", nodeName(job.node[i])]];
  const cause = causeOf(i), backwards = cause >= 0 && kindName(i) && job.event[cause] === job.send && job.node[cause] !== job.node[i];
  if (nodeName(job.peer[i])) list.push([backwards ? "from" : "to", nodeName(job.peer[i])]);
  if (word === "timer") list.push(["timer", kindName(i)]);
  else if (kindName(i)) list.push(["message", `${kindName(i)} (number ${job.message[i]})`], ["scalars of a copy", number(job.scalars[i])]);
  if (backwards) list.push(["on the way", number(job.time[i] - job.time[cause])]);
  if (job.hop[i] > 0) list.push(["hop", job.hop[i]]);
  if (job.round[i] >= 0) list.push(["round", job.round[i]]);
  if (job.version[i] >= 0) list.push(["model version", job.version[i]]);
  if (word in VALUES) list.push([VALUES[word], number(job.value[i])]);
  if (job.reason[i] >= 0) list.push(["reason", job.names[job.reason[i]]]);
  return list;
}

const sentence = (i) => [job.words[job.event[i]], "at", nodeName(job.node[i]), kindName(i) && `(${kindName(i)})`].filter(Boolean).join(" ");

function make(tag, text, ...children) {
  const element = document.createElement(tag);
  if (text !== null) element.textContent = text;
  element.append(...children);
  return element;
}

function describe() {
  details.replaceChildren();
  if (selected < 0) {
    details.append(make("p", "Choose an event in the diagram: its details and what led to it appear here."));
    return;
  }
  const list = make("dl", null);
  for (const [name, value] of facts(selected)) list.append(make("div", null, make("dt", name), make("dd", String(value))));
  details.append(make("h3", `Event ${selected}: ${sentence(selected)}`), list);
  if (chain.length === 1) {
    details.append(make("p", "Nothing led to it: it was due by the schedule."));
    return;
  }
  const causes = make("ol", null);
  for (const event of chain.slice(1, CHAIN + 1)) {
    const button = make("button", `${event}: ${sentence(event)}, time ${short(job.time[event])}`);
    button.type = "button";
    button.addEventListener("click", () => { select(event); bringIntoView(event); details.focus(); });
    causes.append(make("li", null, button));
  }
  details.append(make("h4", "Because of"), causes);
  if (chain.length > CHAIN + 1) details.append(make("p", `… and ${chain.length - CHAIN - 1} earlier events.`));
}

function fillTable() {
  const body = find("#diagram-table tbody"), lines = [];
  for (const m of inView()) {
    if (lines.length >= LISTED) break;
    const send = job.starts[m], cells = [short(job.sent[m]), job.lost[m] ? "lost" : short(job.arrived[m]),
      nodeName(job.from[m]), nodeName(job.to[m]), kindName(send), number(job.scalars[send])];
    const button = make("button", String(job.ends[m])), event = job.ends[m];
    button.type = "button";
    button.addEventListener("click", () => select(event));
    lines.push(make("tr", null, make("td", null, button), ...cells.map((cell) => make("td", cell))));
  }
  body.replaceChildren(...lines);
}
